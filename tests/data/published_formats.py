"""Small data sets written by hand, true to the published formats."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import PIL.Image

OBJECT = {
    "shape": "cube",
    "size": "large",
    "color": "red",
    "material": "rubber",
    "3d_coords": [1.0, -2.0, 0.7],
    "rotation": 12.5,
    "pixel_coords": [100, 120, 11.5],
}


def picture(path: Path, colour: str = "red", size: tuple[int, int] = (8, 6)) -> bytes:
    """Write a real image file and return its bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    kind = {".jpg": "JPEG", ".png": "PNG"}[path.suffix]
    PIL.Image.new("RGB", size, colour).save(buffer, format=kind)
    path.write_bytes(buffer.getvalue())
    return buffer.getvalue()


def data_url() -> str:
    """A small image as a data URL."""
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (2, 2), "blue").save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = value if isinstance(value, str) else json.dumps(value)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def archive(path: Path, members: dict[str, str | bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return path


def question(id_: Any = 42000, image_id: Any = 42, text: str = "What is on the table?", **more: Any) -> dict[str, Any]:
    return {"image_id": image_id, "question": text, "question_id": id_, **more}


def annotation(id_: Any = 42000, image_id: Any = 42, answers: list[str] | None = None, **more: Any) -> dict[str, Any]:
    answers = answers or ["cup"] * 7 + ["mug"] * 3
    return {
        "question_type": "what is",
        "multiple_choice_answer": max(set(answers), key=answers.count),
        "answers": [
            {"answer": answer, "answer_confidence": "yes", "answer_id": number}
            for number, answer in enumerate(answers, start=1)
        ],
        "image_id": image_id,
        "answer_type": "other",
        "question_id": id_,
        **more,
    }


def vqa_questions(records: list[Any], subtype: str = "val2014", **more: Any) -> dict[str, Any]:
    return {
        "info": {"description": "questions", "version": "2.0"},
        "task_type": "Open-Ended",
        "data_type": "mscoco",
        "license": {"name": "CC BY 4.0"},
        "data_subtype": subtype,
        "questions": records,
        **more,
    }


def vqa_annotations(records: list[Any], subtype: str = "val2014") -> dict[str, Any]:
    return {
        "info": {"description": "annotations"},
        "data_subtype": subtype,
        "data_type": "mscoco",
        "license": {},
        "annotations": records,
    }


VQA2 = "v2_OpenEnded_mscoco_{}_questions.json"
VQA2_ANNOTATIONS = "v2_mscoco_{}_annotations.json"


def vqa2(folder: Path, questions: list[Any] | None = None, annotations: list[Any] | None = None) -> Path:
    """VQA v2 validation; two questions unless told otherwise."""
    questions = [question(), question(42001, 42, "Is it red?")] if questions is None else questions
    if annotations is None:
        annotations = [annotation(), annotation(42001, answers=["yes"] * 10, answer_type="yes/no")]
    write(folder / VQA2.format("val2014"), vqa_questions(questions))
    write(folder / VQA2_ANNOTATIONS.format("val2014"), vqa_annotations(annotations))
    return folder


def vqa1_multiple_choice(folder: Path) -> Path:
    choices = ["cup", "mug", "plate", *(f"thing {n}" for n in range(15))]
    records = [question(multiple_choices=choices)]
    header = {"task_type": "Multiple-Choice", "num_choices": 18}
    write(folder / "MultipleChoice_mscoco_val2014_questions.json", {**vqa_questions(records), **header})
    write(folder / "mscoco_val2014_annotations.json", vqa_annotations([annotation()]))
    return folder


def rephrasings(folder: Path) -> Path:
    """Two originals, three rephrasings; one rephrasing has the id of the second original, as in the release."""
    records = [
        question(1001, 1, "How many dogs are there?", coco_split="val2014"),
        question(10010, 1, "What is the number of dogs?", rephrasing_of=1001, coco_split="val2014"),
        question(10011, 1, "Count the dogs?", rephrasing_of=1001, coco_split="val2014"),
        question(10012, 10, "Is the bus red?", coco_split="val2014"),
        question(10012, 1, "Dogs: how many?", rephrasing_of=1001, coco_split="val2014"),
    ]
    labels = [
        annotation(r["question_id"], r["image_id"], ["yes" if r["image_id"] == 10 else "2"] * 10) for r in records
    ]
    write(folder / "v2_OpenEnded_mscoco_valrep2014_humans_og_questions.json", vqa_questions(records))
    write(folder / "v2_mscoco_valrep2014_humans_og_annotations.json", vqa_annotations(labels))
    return folder


def okvqa(folder: Path) -> Path:
    label = annotation(424, 42, ["race"] * 10, question_type="four", confidence=3)
    for one in label["answers"]:
        one["raw_answer"] = "racing"
    write(folder / "OpenEnded_mscoco_val2014_questions.json", vqa_questions([question(424)]))
    write(folder / "mscoco_val2014_annotations.json", vqa_annotations([label]))
    return folder


def visual7w(folder: Path) -> Path:
    def pair(id_: int, image_id: int, kind: str = "what") -> dict[str, Any]:
        return {
            "qa_id": id_,
            "image_id": image_id,
            "question": f"{kind.capitalize()} is it?",
            "answer": "A cat.",
            "type": kind,
            "multiple_choices": ["A dog.", "A cow.", "A fox."],
        }

    images = [
        {"image_id": 1, "filename": "v7w_1.jpg", "split": "train", "qa_pairs": [pair(10, 1)]},
        {
            "image_id": 2,
            "filename": "v7w_2.jpg",
            "split": "val",
            "qa_pairs": [pair(n, 2, "where" if n % 2 else "who") for n in range(20, 40)],
        },
        {"image_id": 3, "filename": "v7w_3.jpg", "split": "test", "qa_pairs": [pair(50, 3)]},
    ]
    boxes = [{"box_id": 1, "name": "cat", "height": 1, "width": 2, "x": 3, "y": 4}]
    write(folder / "dataset_v7w_telling.json", {"dataset": "v7w_telling", "images": images, "boxes": boxes})
    return folder


def genome(folder: Path) -> Path:
    def pair(id_: int, image: int, asked: str, answer: str) -> dict[str, Any]:
        return {
            "a_objects": [],
            "question": asked,
            "image_id": image,
            "qa_id": id_,
            "answer": answer,
            "q_objects": [{"object_id": 7, "x": 1, "y": 2, "w": 3, "h": 4, "names": ["clock"], "synsets": []}],
        }

    value = [
        {"id": 1, "qas": [pair(986769, 1, "What color is the clock?", "Green."), pair(986768, 1, "Who?", "A man.")]},
        {"id": 2, "qas": []},
        {"id": 3, "qas": [pair(5, 3, "Is it day?", "Yes.")]},
    ]
    write(folder / "question_answers.json", value)
    return folder


def cocoqa(folder: Path, end: str = "\n") -> Path:
    for split, image in (("train", 42), ("test", 73)):
        columns = {
            "questions": ["what is on the table", "how many dogs are there", "what is the color of the bus"],
            "answers": ["cup", "two", "red"],
            "img_ids": [str(image), str(image), "99"],
            "types": ["0", "1", "2"],
        }
        for name, lines in columns.items():
            path = folder / split / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes("".join(line + end for line in lines).encode())
    return folder


def daquar(folder: Path) -> Path:
    lines = [
        "what is on the right side of the black telephone and on the left side of the red chair in the image3 ?",
        "desk",
        "what are the objects on the table in the image5 ?",
        "cup, plate, book",
    ]
    for split in ("train", "test"):
        write(folder / f"qa.894.raw.{split}.txt", "\n".join(lines) + "\n")
    write(folder / "qa.894.raw.txt", "\n".join(lines * 2) + "\n")
    write(folder / "qa.37.raw.test.txt", "\n".join(lines[:2]) + "\n")
    return folder


def daquar_csv(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "eval"):
        with open(folder / f"data_{split}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["question", "answer", "image_id"])
            writer.writerow(["what is on the table", "cup, plate", "image3"])
            writer.writerow(["how many chairs are there", "6", "image5"])
    return folder


def gqa(folder: Path) -> Path:
    def asked(text: str, answer: str | None, structural: str) -> dict[str, Any]:
        value: dict[str, Any] = {
            "semantic": [{"operation": "select", "dependencies": [], "argument": "wall (722332)"}],
            "entailed": ["02930160"],
            "equivalent": ["02930152"],
            "question": text,
            "imageId": "2354786",
            "isBalanced": True,
            "groups": {"global": None, "local": "06-sky_dark"},
            "semanticStr": "select: wall (722332)",
            "annotations": {"answer": {}, "question": {"2": "1"}, "fullAnswer": {}},
            "types": {"detailed": "weatherVerify", "semantic": "global", "structural": structural},
        }
        if answer is not None:
            value |= {"answer": answer, "fullAnswer": f"It is {answer}."}
        return value

    value = {
        "02930152": asked("Is the sky dark?", "yes", "verify"),
        "07333408": asked("What is on the wall?", "pipe", "query"),
    }
    write(folder / "val_balanced_questions.json", value)
    write(folder / "test_balanced_questions.json", {"01": asked("Who?", None, "query")})
    return folder


def clevr(folder: Path, key: str = "function", values: str = "value_inputs") -> Path:
    program = [
        {"inputs": [], key: "scene", values: []},
        {"inputs": [0], key: "filter_color", values: ["red"]},
        {"inputs": [1], key: "count", values: []},
    ]
    questions = [
        {
            "image_index": 0,
            "program": program,
            "question_index": 0,
            "image_filename": "CLEVR_val_000000.png",
            "question_family_index": 2,
            "split": "val",
            "answer": "1",
            "question": "How many red things are there?",
        },
        {
            "image_index": 1,
            "program": [*program[:2], {"inputs": [1], key: "exist", values: []}],
            "question_index": 1,
            "image_filename": "CLEVR_val_000001.png",
            "question_family_index": 3,
            "split": "val",
            "answer": "yes",
            "question": "Is there a red thing?",
        },
    ]
    scenes = [
        {
            "split": "val",
            "image_index": n,
            "image_filename": f"CLEVR_val_{n:06d}.png",
            "objects": [OBJECT],
            "relationships": {side: [[]] for side in ("left", "right", "front", "behind")},
            "directions": {},
        }
        for n in range(3)
    ]
    info = {"split": "val", "version": "1.0"}
    write(folder / "questions" / "CLEVR_val_questions.json", {"info": info, "questions": questions})
    write(folder / "scenes" / "CLEVR_val_scenes.json", {"info": info, "scenes": scenes})
    return folder


def jsonl(folder: Path) -> Path:
    rows = [
        {"id": 1, "question": "What is it?", "image": "a.png", "answers": ["cat", "cat", "dog"]},
        {"id": "two", "question": "Which?", "answer": "b", "choices": ["a", "b"], "question_type": "which"},
    ]
    write(folder / "mine.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    return folder


def vlmevalkit(folder: Path) -> Path:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (8, 6), "red").save(buffer, format="PNG")
    image = base64.b64encode(buffer.getvalue()).decode()
    rows = [
        "index\tquestion\tA\tB\tanswer\timage",
        f"0\tWhich?\tcat\tdog\tB\t{image}",
        "1000000\tWhich?\tdog\tcat\tA\t0",
    ]
    write(folder / "MINE.tsv", "\n".join(rows) + "\n")
    return folder


def mme(folder: Path) -> Path:
    """Two categories, one with its images beside the questions, one with both in folders of their own."""
    lines = "Is there a {} here? Please answer yes or no.\tYes\nIs there a {} here? Please answer yes or no.\tNo\n"
    write(folder / "existence" / "0001.txt", lines.format("cup", "dog"))
    write(folder / "artwork" / "questions_answers_YN" / "0001.txt", lines.format("painting", "vase") + "\n")
    return folder


def convqa(folder: Path) -> Path:
    """The cleaned test file of Logical ConVQA."""
    colour = [{"answer": "yes", "question": "is train yellow"}, {"answer": "no", "question": "is train brown"}]
    place = [{"answer": "yes", "question": "is train on tracks"}, {"answer": "train", "question": "what is on tracks"}]
    return write(folder / "cleaned_Logical_ConVQA_test.json", {"2342914": [colour, place], "2342916": []}).parent


ALL = {
    "vqa": vqa2,
    "rephrasings": rephrasings,
    "okvqa": okvqa,
    "visual7w": visual7w,
    "genome": genome,
    "cocoqa": cocoqa,
    "daquar": daquar,
    "gqa": gqa,
    "mme": mme,
    "convqa": convqa,
    "clevr": clevr,
    "vlmevalkit": vlmevalkit,
    "table": jsonl,
}
"""Format -> the function that writes a small data set of it."""
