"""Runs inside Blender: draws the scenes it is told to. Needs bpy and the standard library alone.

Every line on standard input is a job in JSON, every reply a line on standard output behind `@pfungst `, since Blender
prints there too. A job names its engine settings, camera, lamps, backdrop, objects and the file to write; this script
knows nothing about CLEVR.
"""

import json
import math
import sys
import traceback
from pathlib import Path
from typing import Any

import bpy
from mathutils import Vector

PREFIX = "@pfungst "


def reply(message: dict[str, Any]) -> None:
    # A line of Blender's own may be unfinished.
    sys.stdout.write("\n" + PREFIX + json.dumps(message) + "\n")
    sys.stdout.flush()


def smooth_mesh(name: str, vertices: list[Any], faces: list[Any], normals: list[Any]) -> Any:
    """A mesh with the normals of the true surface, which a mesh of this fineness only comes near to."""
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(vertices, [], faces)
    mesh.polygons.foreach_set("use_smooth", [True] * len(mesh.polygons))
    if hasattr(mesh, "use_auto_smooth"):  # Before Blender 4.1 custom normals had to be switched on.
        mesh.use_auto_smooth = True
    mesh.normals_split_custom_set_from_vertices(normals)
    mesh.update()
    return mesh


def on_curve(x: float, y: float, z: float = 0.0) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The point of |x|^3 + |y|^3 + |z|^3 = 1 in a direction, and the unit normal there."""
    size = (abs(x) ** 3 + abs(y) ** 3 + abs(z) ** 3) ** (1 / 3)
    point = (x / size, y / size, z / size)
    slope = [math.copysign(value * value, value) for value in point]
    length = math.sqrt(sum(value * value for value in slope))
    return point, tuple(value / length for value in slope)


def cube_mesh(edge: float, steps: int = 12) -> Any:
    """Half edge 1; faces flat to 1 - edge, from there on curved."""
    core = 1.0 - edge
    bend = [math.tan(math.pi / 4 * i / steps) for i in range(steps + 1)]
    ticks = [(-core, -value) for value in reversed(bend)] + [(core, value) for value in bend]
    vertices: list[Any] = []
    normals: list[Any] = []
    faces: list[Any] = []
    for axis in range(3):
        for sign in (-1, 1):
            first = len(vertices)
            for core_u, tilt_u in ticks:
                for core_v, tilt_v in ticks:
                    direction, centre = [0.0] * 3, [0.0] * 3
                    direction[axis], direction[(axis + 1) % 3], direction[(axis + 2) % 3] = sign, tilt_u, tilt_v
                    centre[axis], centre[(axis + 1) % 3], centre[(axis + 2) % 3] = sign * core, core_u, core_v
                    point, normal = on_curve(*direction)
                    vertices.append([c + edge * p for c, p in zip(centre, point)])
                    normals.append(normal)
            for i in range(len(ticks) - 1):
                for j in range(len(ticks) - 1):
                    a = first + i * len(ticks) + j
                    face = [a, a + len(ticks), a + len(ticks) + 1, a + 1]
                    faces.append(face if sign > 0 else face[::-1])
    return smooth_mesh("cube", vertices, faces, normals)


def turned_mesh(name: str, profile: list[tuple[float, float, float, float]], around: int = 128) -> Any:
    """A profile of (radius, height, normal outwards, normal upwards) turned about the z axis and closed at its ends."""
    vertices, normals = [], []
    faces: list[Any] = []
    for radius, height, out, up in profile:
        for i in range(around):
            cos, sin = math.cos(2 * math.pi * i / around), math.sin(2 * math.pi * i / around)
            vertices.append((radius * cos, radius * sin, height))
            normals.append((out * cos, out * sin, up))
    for ring in range(len(profile) - 1):
        for i in range(around):
            a, b = ring * around + i, ring * around + (i + 1) % around
            faces.append((a, b, b + around, a + around))
    faces.append(tuple(range(around))[::-1])
    faces.append(tuple(range((len(profile) - 1) * around, len(profile) * around)))
    return smooth_mesh(name, vertices, faces, normals)


def cylinder_mesh(bevel: float, steps: int = 10) -> Any:
    core = 1.0 - bevel
    profile = []
    for sign in (-1, 1):
        for i in range(steps + 1):
            angle = (i / steps - (sign < 0)) * math.pi / 2
            point, normal = on_curve(math.cos(angle), math.sin(angle))
            profile.append((core + bevel * point[0], sign * core + bevel * point[1], normal[0], normal[1]))
    return turned_mesh("cylinder", profile)


def sphere_mesh(steps: int = 64) -> Any:
    angles = [math.pi * (i / steps - 0.5) * 0.9999 for i in range(steps + 1)]
    return turned_mesh("sphere", [(math.cos(a), math.sin(a), math.cos(a), math.sin(a)) for a in angles])


def backdrop_mesh(shape: dict[str, Any], steps: int = 48) -> Any:
    """A plane that curves up into a wall, in the direction `shape["angle"]`."""
    start, radius, height = shape["start"], shape["radius"], shape["height"]
    profile = [(-shape["front"], 0.0, 0.0, 1.0)]
    for i in range(steps + 1):
        sin, cos = math.sin(math.pi / 2 * i / steps), math.cos(math.pi / 2 * i / steps)
        profile.append((start + radius * sin, radius * (1 - cos), -sin, cos))
    if height > radius:
        profile.append((start + radius, height, -1.0, 0.0))
    cos, sin = math.cos(shape["angle"]), math.sin(shape["angle"])
    vertices, normals = [], []
    for along, up, lean, rise in profile:
        for side in (-shape["half_width"], shape["half_width"]):
            vertices.append((cos * along - sin * side, sin * along + cos * side, up))
            normals.append((cos * lean, sin * lean, rise))
    faces = [(2 * i, 2 * i + 2, 2 * i + 3, 2 * i + 1) for i in range(len(profile) - 1)]
    return smooth_mesh("backdrop", vertices, faces, normals)


class Nodes:
    """A material's nodes, built from the output backwards."""

    def __init__(self, name: str) -> None:
        self.material: Any = bpy.data.materials.new(name)
        self.material.use_nodes = True
        self.tree: Any = self.material.node_tree
        self.tree.nodes.clear()

    def add(self, kind: str, **inputs: Any) -> Any:
        node = self.tree.nodes.new(kind)
        for name, value in inputs.items():
            node.inputs[name.replace("_", " ").capitalize() if name != "IOR" else name].default_value = value
        return node

    def mix(self, factor: Any, first: Any, second: Any) -> Any:
        node = self.tree.nodes.new("ShaderNodeMixShader")
        if isinstance(factor, float):
            node.inputs[0].default_value = factor
        else:
            self.tree.links.new(factor.outputs[0], node.inputs[0])
        self.tree.links.new(first.outputs[0], node.inputs[1])
        self.tree.links.new(second.outputs[0], node.inputs[2])
        return node

    def finish(self, node: Any) -> Any:
        output = self.tree.nodes.new("ShaderNodeOutputMaterial")
        self.tree.links.new(node.outputs[0], output.inputs[0])
        return self.material


def glossy(nodes: Nodes, color: tuple[float, ...], roughness: float, anisotropy: float = 0.0) -> Any:
    # Blender 4.0 merged the anisotropic node into the glossy one.
    kind = "ShaderNodeBsdfAnisotropic" if bpy.app.version < (4, 0) and anisotropy else "ShaderNodeBsdfGlossy"
    try:
        node = nodes.add(kind, color=color, roughness=roughness)
    except RuntimeError:
        node = nodes.add("ShaderNodeBsdfAnisotropic", color=color, roughness=roughness)
    # The multiple-scattering model of newer versions reflects more than the published picture's.
    node.distribution = "GGX"
    if anisotropy:
        node.inputs["Anisotropy"].default_value = anisotropy
    return node


def make_material(name: str, spec: dict[str, Any]) -> Any:
    nodes = Nodes(name)
    color = (*spec["color"], 1.0)
    kind = spec["kind"]
    if kind == "flat":
        return nodes.finish(nodes.add("ShaderNodeEmission", color=color))
    if kind == "diffuse":
        return nodes.finish(nodes.add("ShaderNodeBsdfDiffuse", color=color))
    if kind == "metal":
        rough = glossy(nodes, color, spec["rough"], spec["anisotropy"])
        return nodes.finish(nodes.mix(spec["mix"], rough, glossy(nodes, color, spec["sharp"])))
    body = nodes.add("ShaderNodeBsdfDiffuse", color=color)
    coat = glossy(nodes, (1.0, 1.0, 1.0, 1.0), spec["rough"])
    return nodes.finish(nodes.mix(nodes.add("ShaderNodeFresnel", IOR=spec["ior"]), body, coat))


def look_at(thing: Any, position: Any, target: Any) -> None:
    thing.location = position
    thing.rotation_mode = "QUATERNION"
    thing.rotation_quaternion = (Vector(target) - Vector(position)).to_track_quat("-Z", "Y")


def set_up(job: dict[str, Any]) -> Any:
    scene = bpy.context.scene
    scene.render.engine = "CYCLES"
    cycles = scene.cycles
    cycles.device = "CPU"
    cycles.samples = job["samples"]
    cycles.seed = job["seed"]
    cycles.use_adaptive_sampling = False
    cycles.use_denoising = job["denoise"]
    cycles.blur_glossy = 2.0
    cycles.max_bounces = job["bounces"]
    cycles.sample_clamp_direct = cycles.sample_clamp_indirect = 0.0
    if job["threads"]:
        scene.render.threads_mode = "FIXED"
        scene.render.threads = job["threads"]
    scene.render.resolution_x, scene.render.resolution_y = job["width"], job["height"]
    scene.render.resolution_percentage = 100
    scene.view_settings.view_transform = job["view"]
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGB"
    scene.render.filter_size = job["filter"]
    scene.render.dither_intensity = 0.0
    scene.world = bpy.data.worlds.new("dark")
    scene.world.use_nodes = True
    background = scene.world.node_tree.nodes.get("Background")
    if background is not None:
        background.inputs[0].default_value = (0.0, 0.0, 0.0, 1.0)
    return scene


def add_camera(scene: Any, job: dict[str, Any]) -> None:
    camera = bpy.data.cameras.new("camera")
    camera.lens, camera.sensor_width = job["lens"], job["sensor"]
    holder = bpy.data.objects.new("camera", camera)
    look_at(holder, job["camera"], (0.0, 0.0, 0.0))
    scene.collection.objects.link(holder)
    scene.camera = holder


def add_lamps(scene: Any, job: dict[str, Any], gain: float) -> None:
    for spec in job["lamps"]:
        lamp = bpy.data.lights.new("lamp", spec["kind"])
        lamp.color, lamp.energy = spec["color"], spec["energy"]
        if spec["kind"] == "SUN":
            lamp.angle = spec["size"]
        else:
            lamp.energy /= gain
            lamp.shape, lamp.size = "SQUARE", spec["size"]
        holder = bpy.data.objects.new("lamp", lamp)
        look_at(holder, spec["position"], spec["target"])
        scene.collection.objects.link(holder)


def measure_gain(job: dict[str, Any]) -> float:
    """How much brighter than watts / 4 an area lamp of this Blender is: 1, or in newer versions 4 / pi.

    A white plane two units below a lamp of 6.4 pi watts shows 0.4 in the first case.
    """
    lamp = {"kind": "AREA", "color": (1.0, 1.0, 1.0), "energy": 6.4 * math.pi, "size": 0.2}
    plane = {"angle": 0.0, "start": 5.0, "radius": 1.0, "height": 1.0, "half_width": 5.0, "front": 5.0}
    test = {
        "file": job["file"] + ".test.png",
        "width": 4,
        "height": 4,
        "samples": 16,
        "bounces": 0,
        "view": "Raw",
        "denoise": False,
        "camera": (0.0, 0.001, 40.0),
        "lens": 2000.0,
        "lamps": [lamp | {"position": (0.0, 0.0, 2.0), "target": (0.0, 0.0, 0.0)}],
        "backdrop": plane | {"material": {"kind": "diffuse", "color": (1.0, 1.0, 1.0)}},
        "objects": [],
    }
    build(job | test, 1.0)
    image = bpy.data.images.load(test["file"])
    shown = sum(list(image.pixels)[0::4]) / 16
    return 1.0 if shown < 0.45 else 4 / math.pi


def add_objects(scene: Any, job: dict[str, Any]) -> None:
    makers = {"cube": cube_mesh, "cylinder": cylinder_mesh, "sphere": lambda _: sphere_mesh()}
    if job["backdrop"] is not None:
        mesh = backdrop_mesh(job["backdrop"])
        mesh.materials.append(make_material("backdrop", job["backdrop"]["material"]))
        scene.collection.objects.link(bpy.data.objects.new("backdrop", mesh))
    meshes = {}
    for spec in job["objects"]:
        shape = spec["shape"]
        if shape not in meshes:
            meshes[shape] = makers[shape](spec["edge"])
        mesh = meshes[shape].copy()
        mesh.materials.append(make_material("object", spec["material"]))
        thing = bpy.data.objects.new("object", mesh)
        thing.location, thing.scale, thing.rotation_euler = (
            spec["centre"],
            [spec["radius"]] * 3,
            (0.0, 0.0, spec["turn"]),
        )
        scene.collection.objects.link(thing)


def build(job: dict[str, Any], gain: float) -> None:
    """Make the scene of a job and write its image."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = set_up(job)
    add_camera(scene, job)
    add_lamps(scene, job, gain)
    add_objects(scene, job)
    scene.render.filepath = job["file"]
    bpy.ops.render.render(write_still=True)


def main() -> None:
    reply({"ready": True, "version": bpy.app.version_string})
    gain = 0.0
    for line in sys.stdin:
        if not line.strip():
            continue
        job = json.loads(line)
        try:
            if job["lamps"] and not gain:
                gain = measure_gain(job)
            build(job, gain)
            reply({"id": job["id"], "ok": Path(job["file"]).is_file()})
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            reply({"id": job["id"], "ok": False, "error": what, "trace": traceback.format_exc()})


if __name__ == "__main__":
    main()
