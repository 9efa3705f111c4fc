"""Three kinds of models: those that choose among known answers, those that write one, and those that go on writing."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from pfungst.core import Answer, PlayerError, Query
from pfungst.players.hashing import unit
from pfungst.players.huggingface.loading import Loaded
from pfungst.players.options import SHORT_PROMPT, HuggingFaceOptions, best_choice, fill, in_words, lettered


class Classifier:
    """softmax over the model's answer vocabulary.

    A choice is scored by the probability of the label with the same words; where no choice is in the vocabulary, the
    answer is the model's own and no choice has a score.
    """

    needs_picture = True

    def __init__(self, loaded: Loaded, options: HuggingFaceOptions) -> None:
        self._loaded = loaded
        self._options = options
        self._labels = [str(loaded.config.id2label[index]) for index in range(loaded.config.num_labels)]
        self._index: dict[str, int] = {}
        for index, label in enumerate(self._labels):
            self._index.setdefault(_plain(label), index)
        self.longest: int | None = getattr(loaded.config, "max_position_embeddings", None)
        # ViLT draws which patches it looks at where their number is limited: then a batch must not share the draw.
        self.one_by_one = (getattr(loaded.config, "max_image_length", -1) or -1) > 0
        self.settings: dict[str, Any] = {"labels": self._labels}

    def text_of(self, query: Query) -> str:
        return fill(self._options.prompt or "{question}", question=query.question)

    def answer(self, queries: Sequence[Query], pictures: Sequence[Any]) -> list[Answer]:
        inputs = self._loaded.encode([self.text_of(query) for query in queries], pictures, self.longest)
        with torch.inference_mode(), seeded(self._options.seed, self._loaded.device):
            logits = self._loaded.model(**inputs).logits
        chances = torch.softmax(logits.float(), dim=-1).cpu()
        return [self._one(query, row) for query, row in zip(queries, chances, strict=True)]

    def _one(self, query: Query, chances: torch.Tensor) -> Answer:
        places = [self._index.get(_plain(choice)) for choice in query.choices]
        chosen = best_choice(query.choices, [None if place is None else float(chances[place]) for place in places])
        best = int(chances.argmax())
        return chosen or Answer(self._labels[best], confidence=min(1.0, float(chances[best])))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


class Generator:
    """Writes the answer; choices are scored by log P(choice, end)."""

    needs_picture = True

    def __init__(self, loaded: Loaded, options: HuggingFaceOptions) -> None:
        self._loaded = loaded
        self._options = options
        text = loaded.config.text_config
        self._start, self._end, self._pad = text.bos_token_id, text.sep_token_id, text.pad_token_id
        self._generation = generation_settings(loaded.model.text_decoder.generation_config, options)
        self._generation.eos_token_id, self._generation.pad_token_id = self._end, self._pad
        loaded.processor.tokenizer.padding_side = "right"
        self._by_letters = options.choices == "letters"
        self.one_by_one: bool = options.temperature > 0
        self.longest: int | None = text.max_position_embeddings
        self.settings = {
            "max_new_tokens": options.max_new_tokens,
            "choices": options.choices_prompt if self._by_letters else "likelihood",
            "sampling": [options.temperature, options.seed] if options.temperature > 0 else None,
        }

    def text_of(self, query: Query) -> str:
        if query.choices and self._by_letters:
            return lettered(query.question, query.choices, self._options.choices_prompt)
        return fill(self._options.prompt or "{question}", question=query.question)

    def answer(self, queries: Sequence[Query], pictures: Sequence[Any]) -> list[Answer]:
        with torch.inference_mode():
            states, lengths = self._encode(queries, pictures)
            scored = [bool(query.choices) and not self._by_letters for query in queries]
            answers: dict[int, Answer] = {}
            for length in sorted(set(lengths)):
                free = [row for row in range(len(queries)) if lengths[row] == length and not scored[row]]
                if free:
                    some = self._write([queries[row] for row in free], states[free, :length])
                    answers.update(zip(free, some, strict=True))
            for row, query in enumerate(queries):
                if scored[row]:
                    answers[row] = self._choose(query, states[row : row + 1, : lengths[row]])
        return [answers[row] for row in range(len(queries))]

    def _encode(self, queries: Sequence[Query], pictures: Sequence[Any]) -> tuple[torch.Tensor, list[int]]:
        """Question states (batch, length, width) and how many of them are no padding (batch)."""
        inputs = self._loaded.encode([self.text_of(query) for query in queries], pictures, self.longest)
        model = self._loaded.model
        picture = model.vision_model(pixel_values=inputs["pixel_values"])[0]
        states = model.text_encoder(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            encoder_hidden_states=picture,
            encoder_attention_mask=torch.ones(picture.shape[:-1], dtype=torch.long, device=picture.device),
        )[0]
        return states, inputs["attention_mask"].sum(dim=1).tolist()

    def _write(self, queries: Sequence[Query], states: torch.Tensor) -> list[Answer]:
        with seeded(sampling_seed(self._options.seed, queries[0]), states.device):
            output = self._loaded.model.text_decoder.generate(
                input_ids=torch.full((len(queries), 1), self._start, device=states.device),
                encoder_hidden_states=states,
                encoder_attention_mask=torch.ones(states.shape[:-1], dtype=torch.long, device=states.device),
                generation_config=self._generation,
            )
        answers = []
        for tokens, score in written(output, end_tokens(self._generation)):
            text = self._loaded.processor.tokenizer.decode(tokens, skip_special_tokens=True).strip()
            answers.append(Answer(text, confidence=math.exp(score), output_tokens=len(tokens)))
        return answers

    def _choose(self, query: Query, states: torch.Tensor) -> Answer:
        tokenizer = self._loaded.processor.tokenizer
        room = (self.longest or 512) - 1
        targets = [[*tokenizer(c, add_special_tokens=False).input_ids[:room], self._end] for c in query.choices]
        scores: list[float] = []
        for first in range(0, len(targets), self._options.batch_size):
            some = targets[first : first + self._options.batch_size]
            length = max(map(len, some))
            given = [[self._start, *target[:-1]] for target in some]
            ids = torch.tensor([row + [self._pad] * (length - len(row)) for row in given], device=states.device)
            seen = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in given], device=states.device)
            logits = self._loaded.model.text_decoder(
                input_ids=ids,
                attention_mask=seen,
                encoder_hidden_states=states.expand(len(some), -1, -1),
            ).logits
            scores += sequence_scores(logits, some)
        return chosen(query, scores)


def chosen(query: Query, scores: Sequence[float]) -> Answer:
    """The choice with the highest log-probability; the confidence is its share among the choices."""
    shares = torch.softmax(torch.tensor(scores, dtype=torch.float64), dim=0)
    best = max(range(len(scores)), key=scores.__getitem__)
    return Answer(query.choices[best], confidence=min(1.0, float(shares[best])), scores=tuple(scores))


PLAIN_PROMPT = "Question: {question} Answer:"
# Types of models whose answer changes with the padding that a longer question in the same batch brings.
_ALONE = frozenset({"blip", "kosmos-2", "kosmos-2.5", "minicpmv4_6", "minicpmv4_7", "pix2struct"})


class Writer:
    """Asks with the processor's chat template where it has one; the text then goes alone if there is no image."""

    longest: int | None = None

    def __init__(self, loaded: Loaded, options: HuggingFaceOptions) -> None:
        self._loaded = loaded
        self._options = options
        self._tokenizer = loaded.processor.tokenizer
        # The answer is written after the last token, so shorter prompts are filled up in front; where an encoder reads
        # the prompt, places are counted from its first token.
        encodes = getattr(loaded.config, "is_encoder_decoder", False)
        self._tokenizer.padding_side = "right" if encodes else "left"
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        token = getattr(loaded.processor, "image_token", None) or ""
        self._token = token if isinstance(token, str) else str(getattr(token, "content", ""))
        self._chats = bool(getattr(loaded.processor, "chat_template", None))
        # Models with a plain prompt were built for one image and one text, and refuse text alone.
        self.needs_picture: bool = not self._chats
        self._prompt = options.prompt or (SHORT_PROMPT if self._chats else PLAIN_PROMPT)
        self._by_letters = options.choices != "likelihood"
        words = ("template", "options") if self._by_letters else ()
        self.takes: frozenset[str] = frozenset({*words, *(("image_last",) if self._chats else ())})
        self._generation = generation_settings(loaded.model.generation_config, options)
        if self._generation.pad_token_id is None:
            self._generation.pad_token_id = self._tokenizer.pad_token_id
        self._ends = end_tokens(self._generation, self._tokenizer.eos_token_id)
        self.one_by_one: bool = options.temperature > 0 or loaded.config.model_type in _ALONE
        self.settings = {
            "prompt": self._prompt,
            "system": options.system if self._chats else "",
            "max_new_tokens": options.max_new_tokens,
            "choices": options.choices_prompt if self._by_letters else "likelihood",
            "sampling": [options.temperature, options.seed] if options.temperature > 0 else None,
        }

    def text_of(self, query: Query) -> str:
        choices = tuple(map(self._harmless, query.choices)) if self._by_letters else ()
        plain = replace(query, question=self._harmless(query.question), choices=choices)
        return in_words(plain, self._prompt, self._options.choices_prompt)

    def _harmless(self, text: str) -> str:
        """A question that spells the image's own token would count as a second image."""
        return text.replace(self._token, " ".join(self._token)) if self._token else text

    def answer(self, queries: Sequence[Query], pictures: Sequence[Any]) -> list[Answer]:
        answers: dict[int, Answer] = {}
        scored = [bool(query.choices) and not self._by_letters for query in queries]
        for seen in (True, False):
            rows = [r for r, p in enumerate(pictures) if (p is not None) == seen and not scored[r]]
            if rows:
                some = self._write([queries[r] for r in rows], [pictures[r] for r in rows])
                answers.update(zip(rows, some, strict=True))
        for row, query in enumerate(queries):
            if scored[row]:
                answers[row] = self._choose(query, pictures[row])
        return [answers[row] for row in range(len(queries))]

    def _inputs(self, queries: Sequence[Query], pictures: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
        """Rendered prompts and model inputs; either every query has an image or none has."""
        seen = pictures[0] is not None
        extra: dict[str, Any] = {}
        if self._chats:
            # Rendered one by one and without pixels: some versions would fetch anything that looks like an address.
            prompts = [
                self._loaded.processor.apply_chat_template(
                    self._conversation(query, seen), add_generation_prompt=True, tokenize=False
                )
                for query in queries
            ]
            start = self._tokenizer.bos_token
            if start and prompts[0].startswith(start):
                extra["add_special_tokens"] = False
        else:
            prompts = [self.text_of(query) for query in queries]
        images: Any = ([[picture] for picture in pictures] if self._chats else list(pictures)) if seen else None
        if "mm_token_type_ids" in self._loaded.processor.model_input_names:
            # Some models need to know which tokens are an image's, but are told on request only.
            extra["return_mm_token_type_ids"] = True
        settings = {"padding": True, "return_tensors": "pt", **extra}
        if not seen or self._chats or not self._token or self._token in prompts[0]:
            inputs = self._loaded.processor(text=prompts, images=images, **settings)
        else:
            inputs = self._unplaced(prompts, images, settings)
        return prompts, self._loaded.tensors(inputs)

    def _unplaced(self, prompts: list[str], images: list[Any], settings: dict[str, Any]) -> Any:
        """Inputs for prompts that do not say where the image goes: some processors put it first, others need to be told
        by a chat template or by the prompt."""
        reason = ""
        try:
            inputs = self._loaded.processor(text=prompts, images=images, **settings)
            if (inputs["input_ids"] == self._tokenizer.convert_tokens_to_ids(self._token)).any():
                return inputs
        except (ValueError, IndexError, RuntimeError) as error:
            reason = f" ({' '.join(str(error).split())[:200]})"
        raise PlayerError(
            f"The model has no chat template, and its prompt does not say where the image goes{reason}. If it was "
            f"trained with a chat template, copy that (chat_template.jinja) into its folder; otherwise write the "
            f"image's token into the prompt: --option 'prompt={self._token} {{question}}' (choices_prompt likewise)."
        )

    def _conversation(self, query: Query, seen: bool) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = [{"type": "image"}] if seen else []
        last = query.framing is not None and query.framing.image_last
        content.insert(0 if last else len(content), {"type": "text", "text": self.text_of(query)})
        user = {"role": "user", "content": content}
        if not self._options.system:
            return [user]
        return [{"role": "system", "content": [{"type": "text", "text": self._options.system}]}, user]

    def _write(self, queries: Sequence[Query], pictures: Sequence[Any]) -> list[Answer]:
        _, inputs = self._inputs(queries, pictures)
        seed = sampling_seed(self._options.seed, queries[0])
        with torch.inference_mode(), seeded(seed, self._loaded.device):
            output = self._loaded.model.generate(**inputs, generation_config=self._generation)
        answers = []
        for tokens, score in written(output, self._ends):
            said = self._tokenizer.decode(tokens, skip_special_tokens=True)
            text = said.strip()
            answers.append(Answer(text, math.exp(score), raw=said if said != text else None, output_tokens=len(tokens)))
        return answers

    def _choose(self, query: Query, picture: Any) -> Answer:
        """Scores every choice by having the model write it: its own road through images, masks and caches, whatever
        the architecture, with the tokens given."""
        stop = self._tokenizer.eos_token_id
        end = [stop] if stop is not None else sorted(self._ends)[:1]
        scores: list[float] = []
        for first in range(0, len(query.choices), self._options.batch_size):
            some = query.choices[first : first + self._options.batch_size]
            prompts, inputs = self._inputs([query] * len(some), [picture] * len(some))
            space = "" if prompts[0][-1:].isspace() else " "
            targets = [self._tokenizer(space + c, add_special_tokens=False).input_ids + end for c in some]
            settings = copy.deepcopy(self._generation)
            settings.do_sample, settings.temperature, settings.max_new_tokens = False, None, max(map(len, targets))
            with torch.inference_mode():
                output = self._loaded.model.generate(
                    **inputs, generation_config=settings, logits_processor=[_Dictation(targets)]
                )
            scores += [score for _, score in written(output, self._ends)]
        return chosen(query, scores)


class _Dictation:
    """Lets a model write nothing but the given tokens, a row each."""

    def __init__(self, targets: Sequence[Sequence[int]]) -> None:
        self._targets = targets
        self._step = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        only = torch.full_like(scores, -torch.inf)
        for row, target in enumerate(self._targets):
            only[row, target[min(self._step, len(target) - 1)]] = 0.0
        self._step += 1
        return only


def generation_settings(own: Any, options: HuggingFaceOptions) -> Any:
    """The model's generation settings with sampling as the options say and one beam, so that it is a plain reading of
    the model's probabilities."""
    settings = copy.deepcopy(own)
    settings.max_length = None
    settings.max_new_tokens = options.max_new_tokens
    settings.min_new_tokens = None
    settings.min_length = 0
    settings.num_beams = 1
    settings.num_return_sequences = 1
    settings.do_sample = options.temperature > 0
    settings.temperature = options.temperature if options.temperature > 0 else None
    settings.top_p = settings.top_k = settings.typical_p = settings.min_p = None
    settings.return_dict_in_generate = True
    settings.output_logits = True
    return settings


def end_tokens(settings: Any, *further: int | None) -> set[int]:
    own = settings.eos_token_id
    ends = set(own) if isinstance(own, list | tuple) else {own}
    return {int(end) for end in ends | set(further) if end is not None}


def written(output: Any, ends: set[int]) -> list[tuple[list[int], float]]:
    """For every row the new tokens, up to and with the end token, and their log-probability (0 or less).

    log P(answer) = sum_t log p(y_t | y_<t, question, image), from the model's raw logits.
    """
    logits = torch.stack(list(output.logits), dim=1).float()  # (batch, steps, vocabulary)
    tokens = output.sequences[:, -logits.shape[1] :]
    chosen = torch.log_softmax(logits, dim=-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    rows = []
    for row, values in zip(tokens.tolist(), chosen.tolist(), strict=True):
        length = next((place + 1 for place, token in enumerate(row) if token in ends), len(row))
        rows.append((row[:length], min(0.0, math.fsum(values[:length]))))
    return rows


def sequence_scores(logits: torch.Tensor, targets: Sequence[Sequence[int]]) -> list[float]:
    """log P of each row's target tokens. `logits` (rows, steps, vocabulary): step t predicts target t."""
    logs = torch.log_softmax(logits.float(), dim=-1)
    return [float(logs[row, range(len(tokens)), list(tokens)].double().sum()) for row, tokens in enumerate(targets)]


def sampling_seed(seed: int, first: Query) -> int:
    """Where a model samples, a query is alone in its batch, and its words, image and take decide the draw."""
    return int(unit(seed, "sample", first) * 2**63)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """torch's generators set to `seed` inside, and as they were afterwards."""
    cuda = [device.index if device.index is not None else torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(seed)
        yield
