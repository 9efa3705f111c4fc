"""MME as released: a folder a category, a text file an image, with two questions to be answered yes and no.

`existence/000000006040.txt` beside `existence/000000006040.jpg`, or `artwork/questions_answers_YN/10002.txt` and
`artwork/images/10002.jpg`. A line is the question, a tab, and Yes or No. The two questions of an image are a contrast
group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pfungst.core import Example
from pfungst.data.job import Format, Found, Job
from pfungst.rows.fields import Bad, checked
from pfungst.rows.files import File
from pfungst.rows.json_records import lines

_APART = re.compile(r"questions_answers_YN(_\w+)?", re.IGNORECASE)


class Mme(Format):
    """MME, both halves: perception and cognition."""

    name = "mme"
    title = "MME"
    expects = "CATEGORY/NAME.txt or CATEGORY/questions_answers_YN/NAME.txt, two lines of question, tab, Yes or No"
    metric = "yes/no"

    def claims(self, file: File, head: str) -> float:
        if file.suffix != ".txt":
            return 0.0
        asked = [line for line in head.splitlines() if line.strip()][:2]
        return 0.8 if asked and all(_asked(line) for line in asked) else 0.0

    def read(self, job: Job) -> Iterator[Found]:
        files = sorted((_category(file), file.stem, file) for file in job.files if self.claims(file, file.head()))
        # where the questions stand there in a second language too, those of the release count
        plain = {(category, stem) for category, stem, file in files if not _translated(file)}
        files = [one for one in files if one[:2] not in plain or not _translated(one[2])]
        if not files:
            raise self.nothing(job, "there are no MME questions in it.")
        job.name = "mme"
        for category, stem, file in files:
            for number, line in enumerate(lines(file), start=1):
                if line.strip():
                    yield from job.example((file, number), _example, job, category, stem, number, line)


def _asked(line: str) -> tuple[str, str] | None:
    """The question of a line and its answer; None where it is no such line."""
    question, *rest = line.strip().split("\t")
    said = rest[0].strip().rstrip(".").capitalize() if len(rest) == 1 else ""
    return (question.strip(), said) if question.strip() and said in ("Yes", "No") else None


def _category(file: File) -> str:
    *_, above, folder = ("", *file.folder.replace("\\", "/").split("/"))
    return above if _APART.fullmatch(folder) else folder


def _translated(file: File) -> bool:
    apart = _APART.fullmatch(file.folder.replace("\\", "/").rpartition("/")[2])
    return apart is not None and apart[1] is not None


def _example(job: Job, category: str, stem: str, number: int, line: str) -> Example:
    found = _asked(line)
    if found is None:
        raise Bad("the line is not a question, a tab, and Yes or No.")
    question, target = found
    image_id = job.share(f"{category}/{stem}")
    return Example(
        id=f"{image_id}:{number}",
        question=checked(question, "the question"),
        image=job.images.within(stem, category),
        image_id=image_id,
        answers=(target,),
        target=target,
        answer_type="yes/no",
        question_type=job.share(category),
        contrast=image_id,
    )
