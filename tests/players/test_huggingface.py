"""Hugging Face players on tiny random models, offline."""

import io
import json
import math
import shutil
from pathlib import Path

import PIL.Image
import pytest

torch = pytest.importorskip("torch", reason="needs pip install 'pfungst[hf]'")
transformers = pytest.importorskip("transformers", reason="needs pip install 'pfungst[hf]'")

from pfungst.core import BytesImage, Framing, PlayerError, Query, UsageError  # noqa: E402
from pfungst.players import HuggingFaceOptions, HuggingFacePlayer, check_player, resolve  # noqa: E402
from tests.players import tiny_models  # noqa: E402

transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)


def picture(color: tuple[int, int, int] = (200, 30, 30), size: tuple[int, int] = (64, 48)) -> BytesImage:
    buffer = io.BytesIO()
    PIL.Image.new("RGB", size, color).save(buffer, format="PNG")
    return BytesImage(buffer.getvalue())


@pytest.fixture(scope="module")
def vilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_vilt(tmp_path_factory.mktemp("vilt"))


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_blip(tmp_path_factory.mktemp("blip"))


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_llava(tmp_path_factory.mktemp("llava"))


def player(folder: Path, **options: object) -> HuggingFacePlayer:
    made = resolve(f"hf:{folder}", **options)
    assert isinstance(made, HuggingFacePlayer)
    return made


@pytest.mark.parametrize("kind", ["vilt", "blip", "llava"])
@pytest.mark.parametrize("choices", ["likelihood", "letters"])
def test_every_kind_keeps_the_promises_of_a_player(kind: str, choices: str, request: pytest.FixtureRequest) -> None:
    assert check_player(player(request.getfixturevalue(kind), choices=choices, max_new_tokens=5)) == []


def test_kind_is_told_from_the_configuration(vilt: Path, blip: Path, llava: Path) -> None:
    assert [player(folder).kind for folder in (vilt, blip, llava)] == ["classify", "generate", "chat"]


def test_vilt_answer_is_the_argmax_of_the_models_own_softmax(vilt: Path) -> None:
    query = Query("what color is this ?", picture())
    answer = player(vilt).answer([query])[0]
    processor = transformers.AutoProcessor.from_pretrained(vilt, backend="pil")
    model = transformers.ViltForQuestionAnswering.from_pretrained(vilt)
    with torch.inference_mode():
        logits = model(**processor(query.image.pil(), query.question, return_tensors="pt")).logits[0]  # type: ignore[union-attr]
    chances = logits.softmax(-1)
    assert answer.text == tiny_models.LABELS[int(chances.argmax())]
    assert answer.confidence == pytest.approx(float(chances.max()), abs=1e-5)


def test_vilt_scores_choices_in_its_vocabulary_and_gives_the_others_zero(vilt: Path) -> None:
    answer = player(vilt).answer([Query("what color ?", picture(), ("Red", "blue", "purple"))])[0]
    assert answer.scores is not None
    assert answer.scores[2] == 0.0 and min(answer.scores[:2]) > 0
    assert answer.text == ("Red", "blue")[answer.scores.index(max(answer.scores))]
    assert answer.confidence == pytest.approx(max(answer.scores) / sum(answer.scores))


def test_vilt_keeps_its_own_words_where_no_choice_is_in_its_vocabulary(vilt: Path) -> None:
    answer = player(vilt).answer([Query("what color ?", picture(), ("purple", "pink"))])[0]
    assert answer.text in tiny_models.LABELS and answer.scores is None


def test_vilt_cuts_long_questions_and_says_so(vilt: Path) -> None:
    long = "what color is this ? " * 10
    asked = player(vilt)
    assert asked.notes == ()
    asked.answer([Query(long, picture()), Query("what ?", picture())])
    assert len(asked.notes) == 1 and asked.notes[0].startswith("1 questions were longer than the 24 tokens")


def test_vilt_tells_what_it_reads_by_its_tokenizer(vilt: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(vilt)
    texts = ["what color is this ? " * 10, "what ?", "what gnurf is this ?"]
    for text, reading in zip(texts, player(vilt).reading([Query(text) for text in texts]), strict=True):
        tokens = tokenizer.tokenize(text)
        assert reading.words == len(tokens)
        assert reading.unknown == tokens.count(tokenizer.unk_token)
        assert reading.cut == max(0, len(tokenizer(text).input_ids) - 24)
        assert (reading.cut > 0) == (text == texts[0]) and (reading.unknown > 0) == ("gnurf" in text)


def test_vilt_leaves_the_global_random_state_alone(vilt: Path) -> None:
    asked = player(vilt)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    asked.answer([Query("what ?", picture())])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("question", ["what color is this ?", "how many ?"])
def test_blip_writes_what_the_models_own_generate_writes_for_a_single_question(blip: Path, question: str) -> None:
    query = Query(question, picture())
    answer = player(blip, max_new_tokens=6).answer([query])[0]
    processor = transformers.AutoProcessor.from_pretrained(blip, backend="pil")
    model = transformers.BlipForQuestionAnswering.from_pretrained(blip)
    inputs = processor(query.image.pil(), question, return_tensors="pt")  # type: ignore[union-attr]
    tokens = model.generate(**inputs, max_new_tokens=6, do_sample=False)[0]
    assert answer.text == processor.decode(tokens[1:], skip_special_tokens=True).strip()


def test_blip_answers_do_not_depend_on_longer_questions_in_the_batch(blip: Path) -> None:
    short, long = (
        Query("how many ?", picture()),
        Query("is there a cube in the picture and if so is it red ?", picture()),
    )
    asked = player(blip, max_new_tokens=8)
    alone, together = asked.answer([short])[0], asked.answer([long, short])[1]
    assert alone.text == together.text
    assert alone.confidence == pytest.approx(together.confidence, rel=1e-3)


def test_blip_likelihood_is_the_sum_of_stepwise_log_probabilities(blip: Path) -> None:
    query = Query("what color is this ?", picture(), ("red", "the blue cube"))
    scores = player(blip).answer([query])[0].scores
    processor = transformers.AutoProcessor.from_pretrained(blip, backend="pil")
    model = transformers.BlipForQuestionAnswering.from_pretrained(blip)
    inputs = processor(query.image.pil(), query.question, return_tensors="pt")  # type: ignore[union-attr]
    text = model.config.text_config
    by_hand = []
    with torch.inference_mode():
        seen = model.vision_model(pixel_values=inputs["pixel_values"])[0]
        asked = model.text_encoder(input_ids=inputs["input_ids"], encoder_hidden_states=seen)[0]
        for choice in query.choices:
            tokens = [*processor.tokenizer(choice, add_special_tokens=False).input_ids, text.sep_token_id]
            total = 0.0
            for place, token in enumerate(tokens):
                so_far = torch.tensor([[text.bos_token_id, *tokens[:place]]])
                logits = model.text_decoder(input_ids=so_far, encoder_hidden_states=asked).logits[0, -1]
                total += float(logits.log_softmax(-1)[token])
            by_hand.append(total)
    assert scores == pytest.approx(by_hand, abs=1e-3)


def test_chat_likelihood_is_the_sum_of_log_probabilities_of_one_forward_pass(llava: Path) -> None:
    query = Query("what color ?", picture(), ("red", "the blue cube", "a"))
    answer = player(llava, choices="likelihood", prompt="{question}").answer([query])[0]
    processor = transformers.AutoProcessor.from_pretrained(llava, backend="pil")
    model = transformers.LlavaForConditionalGeneration.from_pretrained(llava)
    by_hand = []
    for choice in query.choices:
        text = f"<s>user : <image> what color ? assistant : {choice} </s>"
        inputs = processor(text=text, images=query.image.pil(), return_tensors="pt", add_special_tokens=False)  # type: ignore[union-attr]
        with torch.inference_mode():
            logs = model(**inputs).logits[0].log_softmax(-1)
        tokens = inputs["input_ids"][0]
        ends = range(len(tokens) - len(choice.split()) - 1, len(tokens))
        by_hand.append(sum(float(logs[place - 1, tokens[place]]) for place in ends))
    assert answer.scores == pytest.approx(by_hand, abs=1e-3)
    shares = [math.exp(score) for score in by_hand]
    assert answer.confidence == pytest.approx(max(shares) / sum(shares), abs=1e-4)
    assert answer.text == query.choices[shares.index(max(shares))]


def test_confidence_is_the_probability_of_the_written_answer(llava: Path) -> None:
    query = Query("what color is this ?", picture((30, 30, 200), (40, 80)))
    answer = player(llava).answer([query])[0]
    assert answer.text and answer.confidence and len(answer.text.split()) < 10, "the model must have ended its answer"
    scored = player(llava, choices="likelihood").answer([Query(query.question, query.image, ("blue", answer.text))])[0]
    assert scored.scores is not None
    assert scored.scores[1] == pytest.approx(math.log(answer.confidence), abs=1e-3)


def test_likelihood_scores_do_not_depend_on_how_many_choices_fit_in_a_batch(blip: Path, llava: Path) -> None:
    query = Query("what color is this ?", picture(), ("red", "blue is the color", "green"))
    for folder in (blip, llava):
        wide = player(folder, choices="likelihood").answer([query])[0].scores
        narrow = player(folder, choices="likelihood", batch_size=1).answer([query])[0].scores
        assert wide == pytest.approx(narrow, abs=1e-3)


def test_chat_model_is_asked_through_its_template_with_the_prompt_option(llava: Path) -> None:
    queries = [Query("red", picture())]
    plain, other = player(llava), player(llava, prompt="{question} ? yes or no")
    assert plain.fingerprint != other.fingerprint
    processor = transformers.AutoProcessor.from_pretrained(llava, backend="pil")
    model = transformers.LlavaForConditionalGeneration.from_pretrained(llava)
    prompt = "<s>user : <image> red ? yes or no assistant : "
    inputs = processor(text=prompt, images=queries[0].image.pil(), return_tensors="pt", add_special_tokens=False)  # type: ignore[union-attr]
    tokens = model.generate(**inputs, max_new_tokens=32, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    assert other.answer(queries)[0].text == processor.tokenizer.decode(tokens, skip_special_tokens=True).strip()


def test_a_framing_reaches_the_chat_model_and_stays_within_its_batch(llava: Path, blip: Path) -> None:
    asked = player(llava)
    assert asked.takes == {"template", "options", "image_last"} and player(blip).takes == frozenset()
    assert player(llava, choices="likelihood").takes == {"image_last"}
    last = Query("red", picture(), framing=Framing(template="yes or no {question}", image_last=True))
    processor = transformers.AutoProcessor.from_pretrained(llava, backend="pil")
    model = transformers.LlavaForConditionalGeneration.from_pretrained(llava)
    prompt = "<s>user : yes or no red<image>  assistant : "
    inputs = processor(text=prompt, images=picture().pil(), return_tensors="pt", add_special_tokens=False)
    tokens = model.generate(**inputs, max_new_tokens=32, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    written = processor.tokenizer.decode(tokens, skip_special_tokens=True).strip()
    plain = Query("red", picture())
    assert [answer.text for answer in asked.answer([last, plain])] == [written, asked.answer([plain])[0].text]


def test_chat_model_gets_text_alone_without_a_picture_and_mixed_batches_work(llava: Path) -> None:
    asked = player(llava)
    mixed = [Query("what color ?", picture()), Query("what color ?", None), Query("how many ?", picture())]
    assert [a.text for a in asked.answer(mixed)] == [asked.answer([query])[0].text for query in mixed]


def test_a_question_that_spells_the_picture_token_is_no_second_picture(llava: Path) -> None:
    assert isinstance(player(llava).answer([Query("what is <image> ?", picture())])[0].text, str)


def test_text_model_without_chat_template_uses_the_plain_prompt(tmp_path: Path) -> None:
    folder = tiny_models.save_llava(tmp_path, chat_template=None)
    asked = player(
        folder,
        prompt="<image> question : {question} answer :",
        choices_prompt="<image> {question} {options}",
        max_new_tokens=5,
    )
    assert check_player(asked) == []


def test_sampling_depends_on_seed_and_take_alone(llava: Path, blip: Path) -> None:
    for folder in (llava, blip):
        asked = player(folder, temperature=1.5, seed=3, max_new_tokens=4)
        queries = [Query("what color ?", picture(), take=take) for take in range(4)]
        together = [answer.text for answer in asked.answer(queries)]
        assert together == [asked.answer([query])[0].text for query in queries]
        assert len(set(together)) > 1
        assert together != [
            answer.text for answer in player(folder, temperature=1.5, seed=4, max_new_tokens=4).answer(queries)
        ]


def test_answers_come_batch_by_batch(llava: Path) -> None:
    asked = player(llava, batch_size=2)
    iterator = asked.answer_iter([Query("what ?", picture())] * 5)
    assert [index for index, _ in iterator] == [0, 1, 2, 3, 4]


def test_fingerprint_changes_with_weights_prompt_dtype_and_version_but_not_with_batch_size(tmp_path: Path) -> None:
    first = tiny_models.save_vilt(tmp_path / "a", seed=0)
    second = tiny_models.save_vilt(tmp_path / "b", seed=1)
    copy = Path(shutil.copytree(first, tmp_path / "c"))
    base = player(first).fingerprint
    assert player(copy, batch_size=3).fingerprint == base
    others = [
        player(second).fingerprint,
        player(first, prompt="please {question}").fingerprint,
        player(first, dtype="bfloat16").fingerprint,
        player(first, version="2").fingerprint,
    ]
    assert len({base, *others}) == 5


def test_float16_checkpoint_runs_as_float32_on_a_cpu(tmp_path: Path) -> None:
    folder = tiny_models.save_vilt(tmp_path)
    transformers.ViltForQuestionAnswering.from_pretrained(folder, dtype=torch.float16).save_pretrained(folder)
    asked = player(folder, device="cpu")
    assert asked.answer([Query("what ?", picture())])[0].text in tiny_models.LABELS
    assert asked._loaded.dtype == torch.float32


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    folder = tiny_models.save_vilt(tmp_path)
    model = transformers.ViltForQuestionAnswering.from_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(PlayerError, match="safetensors"):
        player(folder)


def test_code_of_the_models_own_is_not_run(tmp_path: Path) -> None:
    folder = tiny_models.save_vilt(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = "never_heard_of"
    config["auto_map"] = {"AutoConfig": "evil.Config"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(PlayerError, match="cannot be loaded"):
        player(folder)


def test_a_model_that_sees_nothing_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = tiny_models.save_text_model(tmp_path)
    with pytest.raises(PlayerError, match="does not answer questions about images"):
        player(folder)


def test_missing_folder_and_bad_options_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(PlayerError, match="There is no folder"):
        resolve(f"hf:{tmp_path}/nothing")
    with pytest.raises(UsageError, match="Did you mean batch_size"):
        resolve("hf:some/model", batchsize="3")
    with pytest.raises(UsageError, match="one of auto, float32"):
        HuggingFaceOptions(dtype="int8")
    with pytest.raises(UsageError, match="must contain"):
        HuggingFaceOptions(prompt="no place")


def test_device_that_is_not_there_is_a_sentence(vilt: Path) -> None:
    with pytest.raises(PlayerError, match="no device 'cuda:99'"):
        player(vilt, device="cuda:99")
    with pytest.raises(PlayerError, match="is not a device"):
        player(vilt, device="toaster")


def test_a_hub_that_cannot_be_reached_is_asked_for_one_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import LocalEntryNotFoundError

    asked: list[str] = []

    def download(where: str, file: str, **_: object) -> str:
        asked.append(file)
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(transformers.utils.hub, "hf_hub_download", download)
    with pytest.raises(PlayerError, match="somebody/model cannot be loaded: OSError: We couldn't connect"):
        resolve("hf:somebody/model")
    assert asked == ["config.json"]
