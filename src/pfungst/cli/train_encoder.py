"""pfungst train skip-thoughts"""

from __future__ import annotations

from pathlib import Path


def train_encoder(
    corpus: Path | None, out: Path | None, words: list[str], seed: int, device: str, as_json: bool
) -> None:
    """Learn a sentence encoder from a text file: one sentence per line, an empty line between sequences."""
    from pfungst.cli.show import print_json, progress_bar
    from pfungst.core import UsageError
    from pfungst.core.settings import parse_settings, split_settings
    from pfungst.text.encoders import SkipThoughtsConfig, read_corpus, train_skip_thoughts

    if corpus is None:
        raise UsageError("Give the corpus: pfungst train skip-thoughts CORPUS.txt --out FILE.safetensors.")
    given = {"seed": seed, **split_settings(words, what="skip-thoughts encoder")}
    config = parse_settings(SkipThoughtsConfig, given, what="skip-thoughts encoder")
    path = out or Path("runs") / "skip-thoughts.safetensors"
    with progress_bar() as progress:
        model = train_skip_thoughts(
            read_corpus(corpus),
            path,
            config,
            device=device,
            report_every=5,
            progress=lambda state: progress(f"training · loss {state.loss:.3f}", state.step, state.steps),
        )
    if as_json:
        print_json({"file": str(path), "dim": model.dim, "fingerprint": model.fingerprint})
        return
    print(f"{path}: {model.dim} dimensions. Use it as --encoder skip-thoughts:{path}")
