"""The servers of a model: how each of them is doing, how much is asked of it at once, and which is asked next."""

from __future__ import annotations

import math
import ssl
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

from pfungst.core import Answer, Query
from pfungst.core.errors import ended
from pfungst.players.chat_api import AllFailing, Body, Chat, Fatal, Passing, Refused, Spent, Unfit, one_line, tokens
from pfungst.players.http import Connections, HTTPFailure, NoConnection, NoReply, TooLong
from pfungst.players.options import OpenAIOptions


@dataclass(frozen=True, slots=True)
class Usage:
    """What a player has asked of a server so far."""

    requests: int = 0
    """Requests sent, retries included."""
    answers: int = 0
    """Answers received."""
    retries: int = 0
    """Requests that had to be sent again."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    spend: float = 0.0
    """Tokens times the prices given as options, in the currency of those prices; 0 without prices."""

    def __str__(self) -> str:
        words = f"{self.requests:,} requests, {self.retries:,} retries"
        if self.prompt_tokens or self.completion_tokens:
            words += f", {self.prompt_tokens + self.completion_tokens:,} tokens"
        return words + (f", spent {self.spend:,.4f}" if self.spend else "")


class Limit:
    """How many requests may be under way at one server: additive increase, multiplicative decrease.

    It begins at the ceiling, which the user has chosen. A server that pushes back (429, `Retry-After`, no reply in
    time) is asked half as much at once, at most once a round: what was under way when the limit fell says nothing
    about the new limit. Each round of replies without a complaint adds one request, up to the ceiling.

    Latency counts as well. When replies take more than twice as long as they once did, a fifth fewer are asked at
    once for a while. If as many replies a second come then, the requests were only queueing and the lower limit
    stays; if fewer come, the questions have become harder, the old limit returns, and latency must double again
    before the next such trial. So a slower server is relieved without loss, and long replies cost no throughput.
    """

    FEWER = 0.8
    WINDOW = 16

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._limit = float(ceiling)
        self._cut_at = -math.inf
        self._lowest = math.inf
        self._tolerated = 2.0
        self._before: tuple[float, float] | None = None
        """Limit and replies a second before a trial with fewer; None where no trial is under way."""
        self._skip = False
        self._began, self._count, self._seconds = 0.0, 0, 0.0

    @property
    def now(self) -> int:
        return max(1, int(self._limit))

    def answered(self, seconds: float, now: float) -> None:
        """A reply came at `now` (monotonic seconds) after so many seconds."""
        if self._before is None:
            self._limit = min(float(self._ceiling), self._limit + 1 / max(1.0, self._limit))
        if not self._count:  # nothing may have been asked for a while
            self._began = max(self._began, now - seconds)
        self._count += 1
        self._seconds += seconds
        if self._count >= max(self.WINDOW, self.now):
            self._close_window(now)

    def pushed_back(self, sent_at: float, now: float) -> None:
        """The server would not, or could not, serve a request sent at `sent_at`."""
        if sent_at >= self._cut_at:
            self._limit, self._cut_at = max(1.0, self._limit / 2), now
            self._before = None
            self._open_window(now)

    def _close_window(self, now: float) -> None:
        mean, rate = self._seconds / self._count, self._count / max(1e-9, now - self._began)
        self._open_window(now)
        if self._skip:  # these were mostly sent under the limit before
            self._skip = False
            return
        self._lowest = min(self._lowest, mean)
        if self._before is not None:
            limit, earlier = self._before
            self._before = None
            if rate < 0.95 * earlier:
                self._limit = limit
                self._tolerated *= 2
        elif mean > self._tolerated * self._lowest and self._limit > 1:
            self._before = (self._limit, rate)
            self._limit = max(1.0, self._limit * self.FEWER)
            self._skip = True

    def _open_window(self, now: float) -> None:
        self._began, self._count, self._seconds = now, 0, 0.0


_UNCOUNTED = 3
"""Replies without a count of tokens after which a budget is no use; a filter's reply may have none."""
_FIRST_REST, _LONGEST_REST = 1.0, 60.0
"""Seconds after which a server that was left is tried again; doubled each time."""


class Server:
    """One address: what it was asked, whether it is up, how much it takes at once.

    A server that fails `breaker` times in a row is down: it is left, and tried again with one request after a rest. One
    that refuses every request (a wrong key, no such model) is left for good. Used by the event loop's thread alone.
    """

    def __init__(self, address: str, options: OpenAIOptions, key: str) -> None:
        parts = urlsplit(address)
        self.name: str = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        url = self.name + "/chat/completions" + (f"?{parts.query}" if parts.query else "")
        self._options = options
        self._key = key
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._connections = Connections(url, headers, options.connect_timeout, options.timeout)
        self._breaker = options.breaker or max(10, 2 * options.concurrency)
        self._limit = Limit(options.concurrency)
        self._failures_in_a_row = 0
        self._rest = _FIRST_REST
        self._taken = 0
        self.down: str = ""
        """Why it is left, in a sentence; empty while it is up."""
        self.takes_requests = False
        """It took the last request that failed, so the questions may be why."""
        self.open_at: float = 0.0
        """When it may be asked again (monotonic seconds)."""
        self.replies: int = 0
        self.failed: Counter[str] = Counter()
        """Requests that failed, by reason."""
        self.times_left: int = 0

    def free(self, now: float) -> bool:
        """Whether a request may go there now; to a server that is down, one to see whether it is up again."""
        return now >= self.open_at and self._taken < (1 if self.down else self._limit.now)

    @property
    def load(self) -> float:
        return self._taken / self._limit.now

    def place(self) -> ExitStack:
        """A place for a request, taken until this is closed, however often."""
        self._taken += 1
        place = ExitStack()
        place.callback(self._give_back)
        return place

    def _give_back(self) -> None:
        self._taken -= 1

    async def close(self) -> None:
        await self._connections.close()

    def start_afresh(self) -> None:
        self.down, self.open_at, self._failures_in_a_row, self._rest = "", 0.0, 0, _FIRST_REST

    async def ask(self, chat: Chat, query: Query, body: Body, usage: Meter) -> Answer:
        """One request. What comes of it is counted here, and in `usage`."""
        sent = time.monotonic()
        try:
            reply = chat.parse(await self._post(chat, query, body))
            used = tokens(reply)
            usage.count(*used)
            now = time.monotonic()
            answer = chat.read(reply, used, now - sent, others=usage.answers > 0)
        except (Passing, Refused, Fatal, Unfit) as failure:
            if self._key:  # some servers quote it back
                failure.args = (str(failure).replace(self._key, "[key]"),)
            self._failed(failure, sent)
            raise
        self.replies += 1
        usage.answers += 1
        usage.cut += not answer.text and answer.stop == "length"
        self._limit.answered(now - sent, now)
        if self._failures_in_a_row:
            self.start_afresh()
        return answer

    async def _post(self, chat: Chat, query: Query, body: Body) -> bytes:
        try:
            reply = await self._connections.post(body)
        except NoConnection:
            raise Passing(f"no connection within {self._options.connect_timeout:g} s") from None
        except NoReply:  # it is there, and has too much to do
            raise Passing(f"no whole reply within {self._options.timeout:g} s", pushed=True, taken=True) from None
        except TooLong:
            raise Passing("a reply of more than 16 MiB", alive=True, taken=True) from None
        except ssl.SSLCertVerificationError as error:
            raise Refused(
                f"The certificate of the server at {self.name} is not trusted ({one_line(error.verify_message)}). Name "
                "a file of certificates that you trust with the environment variable SSL_CERT_FILE."
            ) from None
        except OSError as error:
            raise Passing(f"no connection: {one_line(str(error))}") from None
        except HTTPFailure as error:
            raise Passing(one_line(str(error)), taken=True) from None
        payload = reply.body
        if self._key:
            payload = payload.replace(self._key.encode(), b"[key]")
        if not 200 <= reply.status < 300:
            return chat.refuse(reply.status, reply.headers, payload, query, self.name)
        return payload

    def _failed(self, failure: Exception, sent: float) -> None:
        now = time.monotonic()
        if isinstance(failure, Fatal | Unfit):
            return
        if isinstance(failure, Refused):
            self._leave(str(failure), math.inf)
            return
        assert isinstance(failure, Passing)
        self.failed[str(failure)] += 1
        if failure.pushed:
            self._limit.pushed_back(sent, now)
        if failure.wait is not None:
            self.open_at = max(self.open_at, now + failure.wait)
        if failure.wait is not None and failure.wait > self._options.max_wait:
            self._leave(
                f"The server at {self.name} asks to wait {failure.wait:.0f} s, longer than max_wait "
                f"({self._options.max_wait:g} s). Run again later: answers already received are kept.",
                failure.wait,
            )
        elif failure.alive:
            self.down = ""
        else:
            self._failures_in_a_row += 1
            self.takes_requests = failure.taken
            if self.down or self._failures_in_a_row >= self._breaker:
                self._leave(
                    f"The server at {self.name} failed {self._failures_in_a_row} times in a row and is considered down "
                    f"(last: {failure}). Start it or check the address, and run again: answers already received are "
                    "kept.",
                    self._rest,
                )

    def _leave(self, why: str, seconds: float) -> None:
        now = time.monotonic()
        if self.down and now < self.open_at:
            return  # a request from before it was left
        self.times_left += not self.down
        self.down, self.open_at = why, now + seconds
        self._rest = min(_LONGEST_REST, 2 * self._rest)

    def __str__(self) -> str:
        said = f"{self.name} gave {self.replies:,} {'reply' if self.replies == 1 else 'replies'}"
        if self.failed:
            (reason, _), *others = self.failed.most_common()
            more = f" and {len(others)} other reason{'s' * (len(others) > 1)}" if others else ""
            said += f"; {self.failed.total():,} requests failed ({reason}{more})"
        if self.times_left:
            said += f"; it went down {self.times_left} time{'s' * (self.times_left > 1)}"
            said += " and is still down" if self.down else ""
        if self.open_at == math.inf:
            said += f". {self.down}"
        return ended(said)


class Servers:
    """All addresses of a model. Work goes to those that answer, most to those with most room."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._all = tuple(servers)

    @property
    def names(self) -> list[str]:
        return [server.name for server in self._all]

    async def close(self) -> None:
        for server in self._all:
            await server.close()

    def pick(self, now: float, avoid: Server | None) -> Server | None:
        """Who is asked next, None if nobody has room. `avoid`: has just failed on this question."""
        if len(self._all) == 1:
            only = self._all[0]
            return only if only.free(now) else None
        others = [server for server in self._all if server is not avoid]
        among = others if any(not server.down for server in others) else self._all
        return min((server for server in among if server.free(now)), key=lambda server: server.load, default=None)

    def any(self) -> Server:
        """One to ask although none has room."""
        return min(self._all, key=lambda server: server.load)

    def next_opening(self, now: float) -> float:
        """When the next server opens that is closed now; infinity if none is."""
        return min((server.open_at for server in self._all if server.open_at > now), default=math.inf)

    def check(self) -> None:
        """Raise Fatal where nobody is left to ask; AllFailing where this may be due to the questions."""
        if all(server.down for server in self._all):
            said = " ".join(server.down for server in self._all)
            kind = AllFailing if all(server.takes_requests for server in self._all) else Fatal
            raise kind(said if len(self._all) == 1 else f"None of the {len(self._all)} servers answers. {said}")

    def start_afresh(self) -> None:
        """Whoever asks again after all were down, having mended them, is not refused for what was."""
        if all(server.down for server in self._all):
            for server in self._all:
                server.start_afresh()

    @property
    def notes(self) -> tuple[str, ...]:
        """What each server did; nothing about a single one that never failed."""
        worth_telling = len(self._all) > 1 or any(server.failed for server in self._all)
        return tuple(str(server) for server in self._all) if worth_telling else ()


class Meter:
    """Counts what is used."""

    def __init__(self, options: OpenAIOptions) -> None:
        self._options = options
        self.requests = self.answers = self.retries = self._prompt = self._completion = 0
        self.cut: int = 0
        """Answers that never began, because the model reached max_tokens before."""
        self._spend = 0.0

    @property
    def usage(self) -> Usage:
        return Usage(self.requests, self.answers, self.retries, self._prompt, self._completion, self._spend)

    def count(self, prompt: int | None, completion: int | None) -> None:
        """Add the tokens of a reply."""
        read, written = prompt or 0, completion or 0
        self._prompt += read
        self._completion += written
        self._spend += (read * self._options.price_in + written * self._options.price_out) / 1e6

    def check(self) -> None:
        """Raise Spent where the budget is spent; Fatal where nobody can tell."""
        budget = self._options.budget
        if budget is not None and self.answers >= _UNCOUNTED and not self._prompt + self._completion:
            raise Fatal(
                "The server does not say how many tokens its replies take, so the budget cannot be kept. Leave it out, "
                "and limit the number of queries with --max-queries."
            )
        if budget is not None and self._spend >= budget:
            raise Spent(f"The budget of {budget:g} is spent ({self.usage}). Answers already received are kept.")
