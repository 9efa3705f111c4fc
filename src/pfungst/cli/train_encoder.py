"""pfungst train skip-thoughts"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def train_encoder(corpus: Path | None, out: Path | None, settings: dict[str, Any], device: str, as_json: bool) -> None:
    """Learn a sentence encoder from a text file: one sentence a line, an empty line between sequences."""
    import dataclasses

    from pfungst.cli.show import print_json, progress_bar
    from pfungst.core import PfungstError
    from pfungst.text.encoders import SkipThoughtsConfig, read_corpus, train_skip_thoughts

    if corpus is None:
        raise PfungstError("Give the corpus: pfungst train skip-thoughts CORPUS.txt --out FILE.safetensors.")
    known = {field.name for field in dataclasses.fields(SkipThoughtsConfig)}
    for key in settings:
        if key not in known:
            raise PfungstError(f"There is no setting {key!r} of skip-thoughts. There are: {', '.join(sorted(known))}.")
    path = out or Path("runs") / "skip-thoughts.safetensors"
    with progress_bar() as progress:
        model = train_skip_thoughts(
            read_corpus(corpus),
            path,
            SkipThoughtsConfig(**settings),
            device=device,
            report_every=5,
            progress=lambda state: progress(f"training · loss {state.loss:.3f}", state.step, state.steps),
        )
    if as_json:
        print_json({"file": str(path), "dim": model.dim, "fingerprint": model.fingerprint})
        return
    print(f"{path}: {model.dim} dimensions. Use it as --encoder skip-thoughts:{path}")
