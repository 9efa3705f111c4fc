"""Make everything that a release consists of, below dist/. Only the upload is left to do.

    python -m scripts.release            (make release, which runs the tests first)

The wheel and the source archive are built twice, from two copies of the commit in different folders, and must have the
same bytes. Beside them: a bill of materials (CycloneDX, JSON) and SHA256SUMS. Whatever is not in order is said in a
sentence, all of it at once, and nothing is left in dist/.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import uuid
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scripts import licences

ROOT = Path(__file__).resolve().parents[1]
LARGEST_WHEEL = 70 * 10**6
"""Bytes."""
JUNK = re.compile(r"(^|/)(__pycache__|\.venv|\.git|runs|site|scratch|\.hypothesis|\.[a-z_]*cache)/|\.py[co]$|\.nb[ci]$")


def main() -> None:
    version = _version(ROOT)
    _stop_if([*not_ready(ROOT, version), *not_current()])
    epoch = int(_git("log", "-1", "--format=%ct"))
    dist = ROOT / "dist"
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        made = build_twice(ROOT, Path(first), Path(second), epoch)
        _stop_if(wrong_files(made, _tracked()))
        dist.mkdir(exist_ok=True)
        for old in dist.glob(f"pfungst-{version}*"):
            old.unlink()
        for path in made:
            (dist / path.name).write_bytes(path.read_bytes())
    files = [dist / path.name for path in made]
    bill = dist / f"pfungst-{version}.cdx.json"
    bill.write_text(json.dumps(bill_of_materials(version, files, epoch), indent=1) + "\n", "utf-8")
    sums = "".join(f"{_sha256(path)}  {path.name}\n" for path in (*files, bill))
    (dist / "SHA256SUMS").write_text(sums, "utf-8")
    print(sums, end="")
    print(f"Left to do: git tag v{version}, push it, upload the wheel and the archive (CONTRIBUTING.md, Releases).")


def not_ready(root: Path, version: str) -> list[str]:
    """What keeps this commit from being a release."""
    problems = []
    dirty = _git("status", "--porcelain", root=root)
    if dirty:
        problems.append(f"Files are changed or unknown to git, commit or remove them first:\n{dirty}")
    if f"v{version}" in _git("tag", "--list", root=root).split():
        problems.append(f"v{version} is tagged already: raise __version__ in src/pfungst/__init__.py.")
    changes = (root / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        problems.append(f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)': name what is under Unreleased.")
    if not re.search(rf"^version: {re.escape(version)}$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE):
        problems.append(f"CITATION.cff names another version than {version}.")
    return problems


def not_current() -> list[str]:
    """Whether the page of licences is that of the installed packages, and these are those of the lock."""
    other = licences.not_as_locked()
    if other:
        return [f"Installed in another version than requirements.lock names: {', '.join(other)}. Run make lock."]
    if licences.PAGE.read_text("utf-8") != licences.page():
        return ["docs/reference/licences.md is not current: run make licences."]
    return []


def build_twice(root: Path, first: Path, second: Path, epoch: int) -> list[Path]:
    """Wheel and source archive of the last commit; an error where a second build has other bytes.

    The first build makes the wheel from the source archive, the second from the tree: these must agree too.
    """
    for folder in (first, second):
        archive = subprocess.run(["git", "-C", str(root), "archive", "HEAD"], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder / "source", filter="data")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    words = [sys.executable, "-m", "build", "--no-isolation"]
    for folder, kinds in ((first, [[]]), (second, [["--sdist"], ["--wheel"]])):
        for kind in kinds:
            command = [*words, *kind, "--outdir", str(folder / "dist"), str(folder / "source")]
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    made = sorted((first / "dist").iterdir())
    _stop_if(
        f"{path.name} is not reproducible: two builds have different bytes."
        for path in made
        if _sha256(path) != _sha256(second / "dist" / path.name)
    )
    return made


def wrong_files(made: list[Path], tracked: set[str]) -> list[str]:
    """What is missing from the wheel or the archive, and what should not be there."""
    problems = []
    [wheel] = [path for path in made if path.suffix == ".whl"]
    [archive] = [path for path in made if path.name.endswith(".tar.gz")]
    if wheel.stat().st_size > LARGEST_WHEEL:
        problems.append(f"The wheel has {wheel.stat().st_size / 1e6:.0f} MB; {LARGEST_WHEEL / 1e6:.0f} are allowed.")
    with zipfile.ZipFile(wheel) as opened:
        inside = {name for name in opened.namelist() if ".dist-info/" not in name}
    wanted = {name.removeprefix("src/") for name in tracked if name.startswith("src/pfungst/")}
    problems += [f"The wheel lacks {name}." for name in sorted(wanted - inside)]
    problems += [f"The wheel has {name}, which git does not know." for name in sorted(inside - wanted)]
    with tarfile.open(archive) as packed:
        names = {member.name.partition("/")[2] for member in packed.getmembers() if member.isfile()} - {"PKG-INFO"}
    problems += [f"The source archive has {name}, which git does not know." for name in sorted(names - tracked)]
    problems += [f"The source archive has {name}." for name in sorted(names) if JUNK.search(name)]
    problems += [
        f"The source archive lacks {name}."
        for name in sorted(tracked - names)
        if name.startswith(("src/", "tests/", "docs/", "examples/", "scripts/"))
    ]
    return problems


def bill_of_materials(version: str, files: list[Path], epoch: int) -> dict[str, Any]:
    """A CycloneDX document: the release, what it contains beside code, and the packages it can bring."""
    packages = [one for one in licences.packages() if one.extras]
    known = {one.name: f"pkg:pypi/{one.name}@{one.version.partition('+')[0]}" for one in packages}
    root = f"pkg:pypi/pfungst@{version}"
    digests = [_sha256(path) for path in files]
    components: list[dict[str, Any]] = [
        {
            "type": "library",
            "bom-ref": known[one.name],
            "name": one.name,
            "version": one.version,
            "purl": known[one.name],
            "scope": "required" if "" in one.extras else "optional",
            "hashes": [{"alg": "SHA-256", "content": one.sha256}],
            "licenses": [{"license": {"name": one.licence}}],
            "properties": [{"name": "pfungst:extra", "value": extra} for extra in one.extras if extra],
        }
        for one in packages
    ]
    for path, kind in licences.data_files().items():
        name = path.relative_to(ROOT / "src").as_posix()
        components.append(
            {
                "type": "machine-learning-model" if path.suffix == ".safetensors" else "data",
                "bom-ref": name,
                "name": name,
                "description": kind.what,
                "hashes": [{"alg": "SHA-256", "content": _sha256(path)}],
                "licenses": [{"license": {"name": kind.terms}}],
            }
        )
    required = [known[one.name] for one in packages if "" in one.extras]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, root + ''.join(digests))}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat(),
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": "pfungst",
                "version": version,
                "purl": root,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [
                    {"name": f"sha256:{path.name}", "value": digest}
                    for path, digest in zip(files, digests, strict=True)
                ],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": root, "dependsOn": sorted(required)},
            *(
                {"ref": known[one.name], "dependsOn": sorted(known[name] for name in one.needs if name in known)}
                for one in packages
            ),
        ],
    }


def _version(root: Path) -> str:
    found = re.search(r'^__version__ = "([^"]+)"', (root / "src/pfungst/__init__.py").read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def _tracked() -> set[str]:
    return set(_git("ls-files", "-z").split("\0")) - {""}


def _git(*words: str, root: Path = ROOT) -> str:
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout.strip()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _stop_if(problems: Any) -> None:
    found = list(problems)
    if found:
        sys.exit("\n".join(["No release:", *found]))


if __name__ == "__main__":
    main()
