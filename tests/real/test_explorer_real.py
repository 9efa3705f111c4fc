"""The explorer over real photographs and over answers that other tools recorded."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import PIL.Image
import pytest

import pfungst
from tests.web.conftest import Served, serving


@pytest.fixture(scope="module")
def served(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    from pfungst.web import WebSettings

    runs = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PFUNGST_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        pfungst.examine("prior", f"vqa:{shared_data / 'vqa2_photos'}#val", ["control"], runs / "photos", limit=30)
        logs = sorted((shared_data / "answers" / "blind_faith_in_text" / "gpt-4.1-mini-2025-04-14").glob("*.jsonl.gz"))
        pfungst.import_logs(logs, runs / "logged", name="logged")
        with serving(WebSettings((runs,), players=("prior",))) as one:
            yield one


def test_photographs_are_shown_small_and_large(served: Served) -> None:
    page = served.page("/answers", run="photos")
    pictures = re.findall(r'src="(/image[^"]+)"', page)
    assert len(pictures) == 40
    for size, side in (("small", 240), ("large", 960)):
        reply = served.client.get(served.address + pictures[0].replace("&amp;", "&").replace("small", size))
        assert reply.headers["content-type"] in ("image/png", "image/jpeg")
        assert max(PIL.Image.open(io.BytesIO(reply.content)).size) <= side


def test_ten_people_and_long_replies_are_shown(served: Served) -> None:
    first = re.search(r"/example\?run=photos&amp;id=(\d+)", served.page("/answers", run="photos"))
    assert first is not None and "people said" in served.page("/example", run="photos", id=first[1])
    logged = served.page("/answers", run="logged", sort="long")
    assert "<dt>reply</dt>" in logged and 'class="answer"' in logged
    assert "conditions" in served.page("/run", run="logged")
