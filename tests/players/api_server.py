"""A real HTTP server on loopback that speaks the chat completions protocol and fails on demand."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Exchange"], None]


class Exchange:
    """One request, and the means to answer it in every good and bad way."""

    def __init__(self, handler: BaseHTTPRequestHandler, body: dict[str, Any], raw: bytes, attempt: int) -> None:
        self.handler = handler
        self.body = body
        self.raw = raw
        self.attempt = attempt
        """How often this very question was asked before."""
        self.headers = dict(handler.headers)

    @property
    def prompt(self) -> str:
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else next(part["text"] for part in content if "text" in part)

    @property
    def image_url(self) -> str | None:
        content = self.body["messages"][-1]["content"]
        parts = () if isinstance(content, str) else content
        return next((part["image_url"]["url"] for part in parts if "image_url" in part), None)

    def say(self, text: Any, **more: Any) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        choice.update(more)
        about = {"id": "1", "object": "chat.completion", "created": 0, "model": self.body["model"]}
        usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
        self.json({**about, "choices": [choice], "usage": usage})

    def json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send(json.dumps(value).encode(), status, headers)

    def fail(self, status: int, message: str = "no", headers: dict[str, str] | None = None, **error: Any) -> None:
        self.json({"error": {"message": message, **error}}, status, headers)

    def send(self, payload: bytes, status: int = 200, headers: dict[str, str] | None = None, length: int = -1) -> None:
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", "application/json")
        self.handler.send_header("Content-Length", str(length if length >= 0 else len(payload)))
        for name, value in (headers or {}).items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(payload)

    def cut(self) -> None:
        """Promise more than is sent, and hang up."""
        self.send(b'{"choices": [{"message"', length=500)
        self.handler.wfile.flush()
        self.handler.close_connection = True

    def hang_up(self) -> None:
        """No reply at all."""
        self.handler.close_connection = True

    def drip(self, seconds: float) -> None:
        """A byte at a time: every read is in time, the whole never is."""
        self.handler.send_response(200)
        self.handler.send_header("Content-Length", "100000")
        self.handler.end_headers()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.handler.wfile.write(b" ")
            self.handler.wfile.flush()
            time.sleep(0.02)
        self.handler.close_connection = True


class Server:
    """Counts everything it is asked and answers as `behave` does."""

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.requests: Counter[bytes] = Counter()
        self.times: list[float] = []
        self.served: Counter[str] = Counter()
        """Prompt -> how many whole answers were sent for it."""
        self.under_way = 0
        self.most_under_way = 0
        self.errors: list[BaseException] = []
        self.lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                owner._post(self)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    @property
    def count(self) -> int:
        return self.requests.total()

    def _post(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self.lock:
            attempt = self.requests[raw]
            self.requests[raw] += 1
            self.times.append(time.monotonic())
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            assert handler.path == "/v1/chat/completions", handler.path
            self.behave(Exchange(handler, json.loads(raw), raw, attempt))
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True
        except BaseException as error:
            self.errors.append(error)
            raise
        finally:
            with self.lock:
                self.under_way -= 1


@contextmanager
def serving(behave: Behaviour) -> Iterator[Server]:
    server = Server(behave)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
    assert not server.errors, server.errors
