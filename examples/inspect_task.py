"""A probe of Pfungst as a task of inspect_ai, for whoever runs all evaluations there.

    pip install 'pfungst[inspect,torch]'
    inspect eval examples/inspect_task.py --model openai/gpt-4o-mini

Every variant of every question becomes a sample; its metadata name the example and the variant. The metric `drop` is
clean minus disturbed accuracy, question by question. For intervals, tests and a report, examine the model with Pfungst
itself: `pfungst examine inspect:openai/gpt-4o-mini`.
"""

from __future__ import annotations

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, Content, ContentImage, ContentText
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, accuracy, metric, scorer
from inspect_ai.solver import TaskState, generate

import pfungst
from pfungst.core import Answer, Variant
from pfungst.players.chat_api import DataURLs
from pfungst.players.options import LETTERS_PROMPT, SHORT_PROMPT, in_words
from pfungst.probes import get_probe
from pfungst.scores import get_metric
from pfungst.scores.matchers import get_matcher


@task
def probed(data: str = "world?scenes=5", probe: str = "rephrase", limit: int = 40) -> Task:
    """The variants that a probe makes of the first `limit` questions of a data set."""
    examples = pfungst.load(data)
    by_id = {example.id: example for example in examples}
    judge, matcher = get_metric(examples.metric), get_matcher("lenient")
    urls = DataURLs()
    samples = []
    for trial in list(get_probe(probe).trials(examples, seed=0))[:limit]:
        samples += [_sample(trial.example_id, variant, urls) for variant in trial.variants]

    @scorer(metrics=[accuracy(), drop()])
    def right() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            example = by_id[state.metadata["example"]]
            read = matcher(state.output.completion, example.choices, example.answer_type)
            return Score(value=judge(example, Answer(read or "")), answer=read, metadata=dict(state.metadata))

        return score

    return Task(dataset=MemoryDataset(samples, name=f"{probe}-{examples.name}"), solver=generate(), scorer=right())


def _sample(example: str, variant: Variant, urls: DataURLs) -> Sample:
    query = variant.query
    content: list[Content] = [ContentText(text=in_words(query, SHORT_PROMPT, LETTERS_PROMPT))]
    if query.image is not None:
        content.append(ContentImage(image=urls.of(query.image).decode()))
    about = {"example": example, "variant": variant.name}
    return Sample(id=f"{example}:{variant.name}", input=[ChatMessageUser(content=content)], metadata=about)


@metric
def drop() -> Metric:
    """Clean minus disturbed accuracy, the mean over examples."""

    def compute(scores: list[SampleScore]) -> float:
        found: dict[str, dict[str, float]] = {}
        for one in scores:
            about = one.score.metadata or {}
            found.setdefault(about["example"], {})[about["variant"]] = one.score.as_float()
        drops = [
            said["clean"] - sum(value for name, value in said.items() if name != "clean") / (len(said) - 1)
            for said in found.values()
            if "clean" in said and len(said) > 1
        ]
        return sum(drops) / len(drops) if drops else float("nan")

    return compute
