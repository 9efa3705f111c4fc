"""`pfungst serve` as a process: it says where it is, answers, and ends with Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to a process there")
def test_the_command_prints_its_address_serves_and_stops(made_runs: Path) -> None:
    words = [sys.executable, "-m", "pfungst", "serve", str(made_runs), "--port", "0", "--host", "0.0.0.0", "--json"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    try:
        assert server.stdout is not None
        lines = []
        for line in server.stdout:
            lines.append(line)
            try:
                told = json.loads("".join(lines))
                break
            except ValueError:
                continue
        assert len(told["token"]) > 20, "an address that others can reach has a token"
        port = told["address"].rstrip("/").rpartition(":")[2]
        assert "prior" in httpx.get(f"http://127.0.0.1:{port}/", timeout=60).text
    finally:
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=60)
    assert "Traceback" not in errors and "pfungst:" not in errors and server.returncode == 0


def test_a_folder_that_is_not_there_and_a_port_that_is_taken_are_sentences(tmp_path: Path, made_runs: Path) -> None:
    import socket

    from pfungst.core import PfungstError
    from pfungst.web import WebSettings, serve

    with pytest.raises(PfungstError, match="is not a folder"):
        serve(WebSettings((tmp_path / "gone",), port=0))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(PfungstError, match="cannot listen"):
            serve(WebSettings((made_runs,), port=taken.getsockname()[1]))
