"""The clients of `soak`: they send a mix of requests to one server, and know what it acknowledged and refused."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import urlencode

from bench.chatter import chat
from bench.http_load import ROOMS, SCOPE, Route
from bench.progress import Progress
from roomlore.core.chat import FIRST_PAUSE_SECONDS

MIX = ("add",) * 10 + ("context",) * 4 + ("search",) * 3 + ("recall",) * 2 + ("session", "reply")
"""The routes of 21 requests in a row; a number that has no divisor with that of the rooms."""
WRITES = ("add", "reply")
ALLOWED = ("503", "503 in a reply")
BROKEN = "refused or broken"
NOT_STORED = "reply not stored yet"
"""A reply that is marked `degraded`. It waits in the memory of the server for the database, and is asked for again."""
SETTLES_SECONDS = 10.0
"""From when a part is back on until the service must be as before."""
PAUSES_SECONDS = 2 * FIRST_PAUSE_SECONDS
"""How long no request is sent to a model that failed before, which adds to the time it takes to settle."""
LAST_SECONDS = 60.0
"""How long a write is repeated after the last request was sent, with all parts up."""
MOST_OPEN = 5_000
_LINES, _CONNECTIONS, _AT_ONCE = 5_000, 8, 64
_TIMEOUT_SECONDS, _AGAIN_SECONDS, _WAITING_SECONDS, _IDLE_SECONDS = 30.0, 0.25, 2.0, 5.0


@dataclass(slots=True)
class Outage:
    """A kill. `back`: when the part answered again; times are of `time.monotonic`. `told`: what clients were told."""

    part: str
    began: float
    back: float = float("inf")
    told: Counter[str] = field(default_factory=Counter)

    def covers(self, begun: float, ended: float) -> bool:
        """Return True if what took this time may have felt it."""
        settles = SETTLES_SECONDS + (PAUSES_SECONDS if self.part == "model" else 0.0)
        return begun <= self.back + settles and self.began <= ended


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that was answered with 200 in the end. `due`: when it was to be sent first."""

    route: str
    due: float
    ended: float


class Load:
    """The requests to one server, and what became of them. `acknowledged`: the texts that must be stored, by room and
    id; `asked`: the ids of the messages that were sent to be replied to; `reasons`: what the first error of each kind
    said."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._lines = [message.text for message in chat("soak", _LINES, 5)]
        self._numbers = count()
        self._ends = float("inf")
        self.open = self.left_out = self.not_stored = 0
        self.outages: list[Outage] = []
        self.answered: list[Answered] = []
        self.acknowledged: dict[tuple[str, str], str] = {}
        self.asked: set[str] = set()
        self.errors: list[str] = []
        self.reasons: dict[str, str] = {}

    async def closed(self, seconds: float) -> float:
        """Send requests over some connections without a pause. Return how many were answered in a second."""
        begun, before = time.monotonic(), len(self.answered)

        async def talk() -> None:
            while (now := time.monotonic()) < begun + seconds:
                await self.send(now)

        await asyncio.gather(*(talk() for _ in range(_CONNECTIONS)))
        return (len(self.answered) - before) / (time.monotonic() - begun)

    async def paced(self, rate: float, seconds: float, over: Callable[[], bool]) -> None:
        """Send so many requests a second, whatever becomes of those before, and wait for the last answers. Stop after
        so many seconds, if it is `over` by then."""
        begun, progress = time.monotonic(), Progress("requests", round(rate * seconds))
        async with asyncio.TaskGroup() as group:
            for number in count():
                await asyncio.sleep(begun + number / rate - time.monotonic())
                if number >= rate * seconds and over():
                    break
                if self.open < MOST_OPEN:
                    group.create_task(self.send(begun + number / rate))
                else:
                    self.left_out += 1
                progress.at(number)
            self._ends = time.monotonic() + LAST_SECONDS

    async def send(self, due: float) -> None:
        """Send the next request; a write until it is acknowledged."""
        number = next(self._numbers)
        name, room = MIX[number % len(MIX)], f"room-{number % ROOMS}"
        text = self._lines[number % _LINES]
        request = route(name, number, text).request(number)
        self.open += 1
        if name == "reply":
            self.asked.add(f"asked-{number}")
        while True:
            async with self._turns:
                begun = time.monotonic()
                status, body, wait = await self.ask(request)
            stored: Mapping[str, str] = {}
            if name == "reply" and status == "200":
                status, stored = outcome_of_reply(body)
            if status == "200":
                self.answered.append(Answered(name, due, time.monotonic()))
                if name == "add":
                    self.acknowledged[room, f"sent-{number}"] = text
                if name == "reply":
                    self.acknowledged[room, f"asked-{number}"] = text
                    self.acknowledged[room, stored["reply_id"]] = stored["text"]
                break
            self.refused(name, status, begun, body)
            if name not in WRITES:
                break
            if time.monotonic() > self._ends:
                self.errors.append(f"{name}: never acknowledged")
                break
            await asyncio.sleep(_WAITING_SECONDS if status == NOT_STORED else wait)
        self.open -= 1

    def refused(self, name: str, status: str, begun: float, body: bytes = b"") -> None:
        """Count an answer that is no 200 with the outages that it fell into. Without one it is an error, and so is
        what no outage explains."""
        if status == NOT_STORED:
            self.not_stored += 1
            return
        covering = [outage for outage in self.outages if outage.covers(begun, time.monotonic())]
        servers = [outage for outage in covering if outage.part == "server"]
        explained = covering if status in ALLOWED else servers if status == BROKEN else []
        if explained:
            explained[-1].told[status] += 1
        else:
            error = f"{name}: {status}" + (f" while {covering[-1].part} was down" if covering else "")
            self.errors.append(error)
            self.reasons.setdefault(error, _detail(body))

    async def ask(self, request: bytes) -> tuple[str, bytes, float]:
        """Return the status of the answer, or what else a client is told, the body, and the seconds to wait before the
        next try."""
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS), self._connection() as (reader, writer):
                writer.write(request)
                return await _read(reader)
        except TimeoutError:
            return "timed out", b"", _AGAIN_SECONDS
        except (OSError, asyncio.IncompleteReadError):
            return BROKEN, b"", _AGAIN_SECONDS

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Take a connection that was used lately, or a new one."""
        while self._idle:
            since, reader, writer = self._idle.pop()
            if time.monotonic() - since < _IDLE_SECONDS and not reader.at_eof():
                break
            writer.close()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            yield reader, writer
        except BaseException:
            writer.close()
            raise
        self._idle.append((time.monotonic(), reader, writer))


def route(name: str, number: int, text: str) -> Route:
    """Return the request `number`."""
    content = {"sender_id": f"person-{number % 7}", "text": text}
    words = " ".join(text.split()[:3])
    match name:
        case "add":
            return Route(name, "POST", "/messages", {"room_id": "", **content})
        case "context":
            return Route(name, "POST", "/context", {"room_id": ""})
        case "search":
            return Route(name, "GET", f"/messages/search?room_id=ROOM&{urlencode({'q': words})}")
        case "recall":
            recall_body = {"scopes": [SCOPE], "messages": [{"role": "user", "content": words}]}
            return Route(name, "POST", "/recall", recall_body)
        case "session":
            return Route(name, "POST", "/sessions/ROOM/context", {})
        case _:
            return Route(name, "POST", "/chat/sse", {"room_id": "", "message": {"id": f"asked-{number}", **content}})


async def _read(reader: asyncio.StreamReader) -> tuple[str, bytes, float]:
    """Return the status and the body of an answer, and its `Retry-After`."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = head.split(maxsplit=2)[1].decode()
    wait = float(head.partition(b"retry-after:")[2].partition(b"\r\n")[0] or _AGAIN_SECONDS)
    if b"transfer-encoding: chunked" not in head:
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        return status, await reader.readexactly(length), wait
    body = b""
    while length := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(length + 2))[:-2]
    await reader.readexactly(2)
    return status, body, wait


def _detail(body: bytes) -> str:
    """Return the `detail` of an error: of the last event of a reply, or of the whole body."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(body.rpartition(b"data: ")[2])["detail"])[:120]
    return ""


def outcome_of_reply(body: bytes) -> tuple[str, Mapping[str, str]]:
    """Return what the events of a reply tell, by the last one. A reply that waits in the memory of the server for the
    database is not acknowledged."""
    name, _, data = body.rstrip().rpartition(b"\n\n")[2].partition(b"\ndata: ")
    if name == b"event: error":
        return f"{json.loads(data)['status']} in a reply", {}
    if name != b"event: done":
        return BROKEN, {}
    last = json.loads(data)
    return (NOT_STORED, {}) if last.get("degraded") else ("200", last)
