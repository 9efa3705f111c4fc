"""Our own HTTP client, against servers that speak it in every way HTTP allows, over TLS and through proxies."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import socket
import ssl
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfungst.core import PlayerError
from pfungst.players.http import Connections, HTTPFailure, NoReply, Reply, TooLong, _Connection

Handler = Callable[[socket.socket], None]


@contextmanager
def listening(handle: Handler) -> Iterator[tuple[int, list[int]]]:
    """A server that hands each connection to `handle`, in a thread; its port, and a growing list of connections."""
    came: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                came.append(1)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        def serve(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                handle(connection)

        threading.Thread(target=run, daemon=True).start()
        try:
            yield listener.getsockname()[1], came
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def request(connection: socket.socket) -> bytes:
    """One whole request, empty when the other side has hung up."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return b""
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def always(*pieces: bytes, close: bool = False) -> Handler:
    def handle(connection: socket.socket) -> None:
        while request(connection):
            for piece in pieces:
                connection.sendall(piece)
            if close:
                return

    return handle


def post(url: str, times: int = 1, timeout: float = 20.0, at_once: bool = False, body: bytes = b"{}") -> list[Reply]:
    async def run() -> list[Reply]:
        connections = Connections(url, {"Content-Type": "application/json"}, 5.0, timeout)
        try:
            if at_once:
                return list(await asyncio.gather(*(connections.post([body]) for _ in range(times))))
            return [await connections.post([body]) for _ in range(times)]
        finally:
            await connections.close()

    return asyncio.run(run())


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Name: a\r\n\r\nyes"


def test_one_connection_serves_one_request_after_the_other() -> None:
    with listening(always(OK)) as (port, came):
        replies = post(f"http://127.0.0.1:{port}/v1?x=1", times=5)
        assert [(reply.status, reply.body, reply.headers["x-name"]) for reply in replies] == [(200, b"yes", "a")] * 5
        assert len(came) == 1
        post(f"http://127.0.0.1:{port}/v1", times=4, at_once=True)
        assert len(came) == 5


def test_the_request_is_what_was_meant() -> None:
    seen: list[bytes] = []

    def handle(connection: socket.socket) -> None:
        seen.append(request(connection))
        connection.sendall(OK)

    body = bytes(range(256)) * 5000
    with listening(handle) as (port, _):
        post(f"http://127.0.0.1:{port}/v1/chat?x=1", body=body)
    head, _, sent = seen[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat?x=1 HTTP/1.1\r\n") and sent == body
    assert f"Host: 127.0.0.1:{port}".encode() in head and b"Content-Type: application/json" in head


@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ny\r\n2;x=1\r\nes\r\n0\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 3\r\n\r\ny", b"es"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK,),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
         % (len(gzip.compress(b"yes", mtime=0)), gzip.compress(b"yes", mtime=0)),),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: %d\r\n\r\n%b"
         % (len(zlib.compress(b"yes")), zlib.compress(b"yes")),),
    ],
)  # fmt: skip
def test_every_way_of_sending_a_reply_is_understood(pieces: tuple[bytes, ...]) -> None:
    with listening(always(*pieces)) as (port, came):
        assert [reply.body for reply in post(f"http://127.0.0.1:{port}/", times=3)] == [b"yes"] * 3
        assert len(came) == 1


@pytest.mark.parametrize(
    "head", [b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"], ids=["1.0", "close"]
)
def test_a_reply_may_end_with_its_connection(head: bytes) -> None:
    with listening(always(head + b"yes", close=True)) as (port, came):
        assert [reply.body for reply in post(f"http://127.0.0.1:{port}/", times=2)] == [b"yes"] * 2
        assert len(came) == 2


def test_a_server_that_says_close_gets_a_new_connection() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nyes"
    with listening(always(closing)) as (port, came):
        post(f"http://127.0.0.1:{port}/", times=3)
        assert len(came) == 3


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (b"", HTTPFailure),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nyes", HTTPFailure),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ny", HTTPFailure),
        (b"hello, this is not HTTP at all\r\n\r\n", HTTPFailure),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", HTTPFailure),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nyes", HTTPFailure),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nyes", HTTPFailure),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", HTTPFailure),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * (17 << 20), TooLong),
    ],
    ids=[
        "nothing",
        "cut",
        "chunk cut",
        "not HTTP",
        "bad chunk",
        "unknown packing",
        "not packed",
        "upgrade",
        "endless header",
    ],
)
def test_what_is_no_reply_is_a_failure(reply: bytes, failure: type[Exception]) -> None:
    with listening(always(reply, close=True)) as (port, _), pytest.raises(failure):
        post(f"http://127.0.0.1:{port}/")


def test_a_reply_that_unpacks_without_end_is_too_long() -> None:
    packed = gzip.compress(bytes(64 << 20))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    with listening(always(head + packed)) as (port, _), pytest.raises(TooLong):
        post(f"http://127.0.0.1:{port}/")


def test_a_server_that_never_replies_is_not_waited_for() -> None:
    done = threading.Event()

    def handle(connection: socket.socket) -> None:
        request(connection)
        done.wait(20)

    with listening(handle) as (port, _), pytest.raises(NoReply):
        post(f"http://127.0.0.1:{port}/", timeout=0.2)
    done.set()


# TLS and proxies


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=secure.test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:secure.test",
         "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


def over_tls(certificate: Path, handle: Handler) -> Handler:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    def secure(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as inner:
            handle(inner)

    return secure


def test_tls_works_with_a_trusted_certificate_and_with_no_other(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with listening(over_tls(certificate, always(OK))) as (port, came):
        with pytest.raises(OSError, match="certificate verify failed"):
            post(f"https://127.0.0.1:{port}/")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
        assert [reply.body for reply in post(f"https://127.0.0.1:{port}/", times=3)] == [b"yes"] * 3
        assert len(came) == 2


def test_a_player_says_that_a_certificate_is_not_trusted_and_does_not_insist(certificate: Path) -> None:
    from pfungst.core import Query
    from pfungst.players import resolve

    with listening(over_tls(certificate, always(OK))) as (port, came):
        with pytest.raises(PlayerError, match="is not trusted .*SSL_CERT_FILE"):
            resolve(f"openai:m@https://127.0.0.1:{port}/v1").answer([Query("what?")])
        assert len(came) == 1


def test_a_proxy_is_asked_for_the_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    def handle(connection: socket.socket) -> None:
        while got := request(connection):
            seen.append(got)
            connection.sendall(OK)

    with listening(handle) as (port, _):
        monkeypatch.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert post("http://plain.test/v1")[0].body == b"yes"
        monkeypatch.setenv("no_proxy", "plain.test")
        assert Connections("http://plain.test/v1", {}, 1, 1)._proxy is None
    assert seen[0].startswith(b"POST http://plain.test/v1 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==" in seen[0] and b"Host: plain.test" in seen[0]


def test_tls_goes_through_a_proxy_in_a_tunnel(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def handle(connection: socket.socket) -> None:
        asked.append(request(connection).split(b"\r\n")[0])
        if b"closed.test" in asked[-1]:
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        over_tls(certificate, always(OK))(connection)

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    monkeypatch.delenv("no_proxy", raising=False)
    with listening(handle) as (port, _):
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        assert [reply.body for reply in post("https://secure.test/v1", times=2)] == [b"yes"] * 2
        with pytest.raises(HTTPFailure, match="refused a connection to closed.test:443 .403."):
            post("https://closed.test/v1")
    assert asked == [b"CONNECT secure.test:443 HTTP/1.1", b"CONNECT closed.test:443 HTTP/1.1"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "0.0.0.0:8000"])
def test_no_proxy_stands_between_this_machine_and_itself(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    assert Connections(f"http://{host}/v1", {}, 1, 1)._proxy is None


def test_a_proxy_of_another_kind_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks5://localhost:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(PlayerError, match="socks5"):
        Connections("https://secure.test/v1", {}, 1, 1)


WHOLE = [
    OK,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ny\r\n2\r\nes\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
    % (len(gzip.compress(b"yes", mtime=0)), gzip.compress(b"yes", mtime=0)),
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 429 Too Many\r\nRetry-After: 3\r\n\r\nslow down",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nmore",
]


@given(
    st.sampled_from(WHOLE),
    st.lists(st.tuples(st.integers(0, 200), st.binary(max_size=4)), max_size=4),
    st.lists(st.integers(0, 200), max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_whatever_comes_is_a_reply_or_a_failure(
    reply: bytes, changes: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    for place, text in changes:
        reply = reply[:place] + text + reply[place + len(text) :]
    places = [0, *sorted(min(cut, len(reply)) for cut in cuts), len(reply)]

    class Wire(asyncio.Transport):
        def write(self, data: object) -> None: ...
        def abort(self) -> None: ...

    async def run() -> None:
        connection = _Connection(asyncio.get_running_loop())
        connection.connection_made(Wire())
        asked = asyncio.ensure_future(connection.ask(b""))
        await asyncio.sleep(0)
        for start, end in pairwise(places):
            connection.data_received(reply[start:end])
        connection.connection_lost(None)
        await asyncio.wait([asked], timeout=5)
        assert asked.done()
        error = asked.exception()
        assert error is None or isinstance(error, HTTPFailure)

    asyncio.run(run())


@pytest.mark.parametrize(("path", "key"), [("/\ud800", "k"), ("/v1", "clé secrète €")])
def test_what_http_cannot_carry_is_told_without_telling_the_key(path: str, key: str) -> None:
    with pytest.raises(PlayerError, match="which HTTP does not allow") as caught:
        Connections(f"http://127.0.0.1:1{path}", {"Authorization": f"Bearer {key}"}, 1.0, 1.0)
    assert "secr" not in str(caught.value)
