"""HTTP/1.1 to one server: connections are kept, and a request costs little beyond what the kernel takes.

General clients spend several times as much on a request: 16 us of processor here are 73 us in aiohttp, as much as all
else that is done for a question. That limits how many a second a quick server can be asked (`benchmarks/asking.py`).
The replies are parsed by llhttp (httptools).
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
import urllib.request
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

import httptools

from pfungst.core import PlayerError
from pfungst.core.offline import is_here, offline, refused

LONGEST_REPLY = 16 << 20
"""Bytes, headers included, packed and unpacked."""
_IDLE_SECONDS = 60.0
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class HTTPFailure(Exception):
    """No reply, or none that can be understood."""


class NoConnection(HTTPFailure):
    """The server was not reached in time."""


class NoReply(HTTPFailure):
    """The whole reply was not there in time."""


class TooLong(HTTPFailure):
    """A reply longer than anything a model says."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


class Connections:
    """To one address. Used in one event loop's thread alone."""

    def __init__(self, url: str, headers: Mapping[str, str], connect_timeout: float, timeout: float) -> None:
        self._parts = parts = urlsplit(url)
        if offline() and not is_here(parts.hostname or ""):
            raise refused(f"{parts.scheme}://{parts.netloc}")
        self._proxy = _proxy(parts)
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._context: ssl.SSLContext | None = None
        self._idle: list[_Connection] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        given = {
            "Host": parts.netloc,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "pfungst",
            **headers,
        }
        if self._proxy is not None and parts.scheme == "http":
            target = url
            given.update(_proxy_authorization(self._proxy))
        lines = (f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "Content-Length: ")
        try:
            self._head = "\r\n".join(lines).encode("latin-1")
        except UnicodeEncodeError as error:
            sign = error.object[error.start]
            raise PlayerError(
                f"{url!r:.200} cannot be asked: its address or key has the character {sign!a}, which HTTP does not "
                "allow."
            ) from None

    async def post(self, body: Sequence[bytes]) -> Reply:
        """The reply to a request with this body. Raises HTTPFailure, or OSError where there is no connection."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a forked process has a loop, and needs connections, of its own
            self._loop, self._idle = loop, []
        connection = self._kept(loop.time()) or await self._connect(loop)
        length = sum(map(len, body))
        timer = loop.call_later(self._timeout, connection.fail, NoReply())
        try:
            reply = await connection.ask(b"".join((self._head, b"%d\r\n\r\n" % length, *body)))
        except BaseException:  # a task that is cancelled too
            connection.close()
            raise
        finally:
            timer.cancel()
        if connection.may_be_kept:
            connection.idle_since = loop.time()
            self._idle.append(connection)
        else:
            connection.close()
        return reply

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _kept(self, now: float) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.may_be_kept and now - connection.idle_since < _IDLE_SECONDS:
                return connection
            connection.close()
        return None

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        parts, proxy = self._parts, self._proxy
        secure = parts.scheme == "https"
        context = self._secured() if secure else None
        host, port = parts.hostname or "", parts.port or (443 if secure else 80)
        try:
            async with asyncio.timeout(self._connect_timeout):
                if proxy is None:
                    # A name may stand for several addresses, of which some do not answer.
                    delay = None if _is_address(host) else 0.25
                    _, connection = await loop.create_connection(
                        lambda: _Connection(loop), host, port, ssl=context, happy_eyeballs_delay=delay
                    )
                    return connection
                near = proxy.hostname or "", proxy.port or (443 if proxy.scheme == "https" else 80)
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop), *near, ssl=self._secured() if proxy.scheme == "https" else None
                )
                if context is not None:
                    connection = await self._tunnel(loop, connection, context, host, port)
                return connection
        except TimeoutError:
            raise NoConnection from None

    def _secured(self) -> ssl.SSLContext:
        # Reading the system's certificates takes longer than a request.
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context

    async def _tunnel(
        self, loop: asyncio.AbstractEventLoop, outer: _Connection, context: ssl.SSLContext, host: str, port: int
    ) -> _Connection:
        assert self._proxy is not None
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        headers = {"Host": place, **_proxy_authorization(self._proxy)}
        lines = (f"CONNECT {place} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", "")
        reply = await outer.ask("\r\n".join(lines).encode("latin-1"), only_head=True)
        if reply.status != 200:
            outer.close()
            raise HTTPFailure(f"the proxy {self._proxy.hostname} refused a connection to {place} ({reply.status})")
        inner = _Connection(loop)
        transport = await loop.start_tls(outer.transport, inner, context, server_hostname=host)
        if transport is None:
            raise HTTPFailure(f"the proxy {self._proxy.hostname} closed the connection to {place}")
        inner.connection_made(transport)
        return inner


class _Connection(asyncio.Protocol):
    """One connection, one request at a time. llhttp calls the methods named on_..."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.idle_since = 0.0
        self.transport: asyncio.Transport
        self._loop = loop
        self._waiting: asyncio.Future[Reply] | None = None
        self._closed = False
        self._start()

    def _start(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._chunks: list[bytes] = []
        self._size = 0
        self._in_body = self._only_head = False

    async def ask(self, request: bytes, only_head: bool = False) -> Reply:
        self._waiting = self._loop.create_future()
        self._only_head = only_head
        if self._closed:
            self.fail(HTTPFailure("the server closed the connection"))
        else:
            self.transport.write(request)
        return await self._waiting

    @property
    def may_be_kept(self) -> bool:
        return not self._closed and not self.transport.is_closing()

    def close(self) -> None:
        self._closed = True
        self.transport.abort()

    def fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._waiting is None or self._waiting.done():
            self.close()  # nobody asked
            return
        self._size += len(data)
        if self._size > LONGEST_REPLY:
            self.fail(TooLong())
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # right only where the tunnel of a proxy stands, which was answered
            self.fail(HTTPFailure("a reply that asks for another protocol"))
        except httptools.HttpParserError as error:
            self.fail(HTTPFailure(f"a reply that is not HTTP ({error})"))

    def connection_lost(self, error: Exception | None) -> None:
        self._closed = True
        if self._in_body and "content-length" not in self._headers and "transfer-encoding" not in self._headers:
            self.on_message_complete()  # its end is the end of the reply
        self.fail(
            HTTPFailure(f"the server closed the connection{f' ({error})' if error else ' without a whole reply'}")
        )

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._in_body = True
        if self._only_head:
            self._answer(self._parser.get_status_code(), b"")

    def on_body(self, chunk: bytes) -> None:
        self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        headers, chunks = self._headers, self._chunks
        if 100 <= status < 200:  # the real reply follows
            self._headers, self._chunks, self._in_body = {}, [], False
            return
        if not self._parser.should_keep_alive():
            self._closed = True
        body, packing = b"".join(chunks), headers.get("content-encoding", "identity").lower()
        if packing not in ("", "identity"):
            try:
                body = _unpacked(body, packing)
            except HTTPFailure as error:
                self.fail(error)
                return
        self._answer(status, body)

    def _answer(self, status: int, body: bytes) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(Reply(status, self._headers, body))
        self._headers, self._chunks, self._size, self._in_body = {}, [], 0, False


def _unpacked(body: bytes, packing: str) -> bytes:
    """A reply that was packed although nobody asked for it."""
    if packing not in ("gzip", "x-gzip", "deflate"):
        raise HTTPFailure(f"a reply packed as {packing[:40]}, which was not asked for")
    unpacking = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        plain = unpacking.decompress(body, LONGEST_REPLY)
    except zlib.error as error:
        raise HTTPFailure(f"a reply that cannot be unpacked ({error})") from None
    if unpacking.unconsumed_tail:
        raise TooLong
    if not unpacking.eof:
        raise HTTPFailure("a packed reply that is cut off")
    return plain


def _proxy(parts: SplitResult) -> SplitResult | None:
    """The proxy that the environment names; none on the way to this machine itself."""
    host = parts.hostname or ""
    if is_here(host) or urllib.request.proxy_bypass(host):
        return None
    proxies = urllib.request.getproxies()
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named:
        return None
    proxy = urlsplit(named if "://" in named else f"http://{named}")
    if proxy.scheme not in ("http", "https"):
        raise PlayerError(
            f"The environment names a proxy of the kind {proxy.scheme}, which cannot be used. Name an HTTP proxy, or "
            f"exempt {host} with NO_PROXY."
        )
    return proxy


def _proxy_authorization(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    words = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(words.encode()).decode('ascii')}"}


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
