"""Sessions with every port in the test's hands: a held clock, a store that fails when told, a cache in memory, a
summariser that says what the test wants, and jobs that run only when the test runs them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import roomlore
from roomlore import Lore, Settings
from roomlore.ports.coordination import SessionCache
from roomlore.services.messages import MessageService
from roomlore.services.sessions import SessionService
from roomlore.wiring import replies as wiring
from roomlore_testkit import FaultyStorage, FrozenClock


@dataclass
class Jobs:
    """The port `Jobs`, run by nobody; `asked` counts."""

    asked: list[str] = field(default_factory=list)

    def handle(self, name: str, work: Callable[[], Awaitable[None]], *, every_seconds: float) -> None:
        raise AssertionError("no job is declared here")

    def ask(self, name: str) -> None:
        self.asked.append(name)

    async def close(self) -> None: ...


@dataclass
class ScriptedSummarizer:
    """The port `Summarizer`: raises `error` where there is one, waits for `gate` where it is held, then answers
    `answer` with the number of the call."""

    answer: str = "what was said so far, part {}"
    name: str = "scripted"
    error: Exception | None = None
    gate: asyncio.Event | None = None
    calls: list[dict[str, object]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def summarise(self, **given: object) -> str:
        self.calls.append(given)
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.answer.format(len(self.calls))

    async def close(self) -> None: ...


@dataclass
class Rig:
    """One process's roomlore. `storage` is the sessions' alone: messages go by a store that never fails."""

    lore: Lore
    storage: FaultyStorage
    clock: FrozenClock
    jobs: Jobs

    @property
    def sessions(self) -> SessionService:
        return self.lore.sessions

    @property
    def messages(self) -> MessageService:
        return self.lore.messages


async def beside(
    lore: Lore,
    stack: AsyncExitStack,
    *,
    cache: SessionCache | None = None,
    summarizer: ScriptedSummarizer | None = None,
    clock: FrozenClock | None = None,
) -> Rig:
    """Another view of the same open store, with sessions of its own, as another process has them."""
    shared = lore._resources
    clock, jobs, storage = clock or FrozenClock(), Jobs(), FaultyStorage(shared.storage)
    common = replace(shared, storage=storage, clock=clock, jobs=jobs, closing=stack, background=False)
    sessions = await wiring.make_sessions(common, summarizer, cache)
    return Rig(Lore(replace(shared, sessions=sessions), lore.tenant), storage, clock, jobs)


@asynccontextmanager
async def open_rig(
    url: str = "sqlite://",
    *,
    settings: Settings | None = None,
    cache: SessionCache | None = None,
    summarizer: ScriptedSummarizer | None = None,
    clock: FrozenClock | None = None,
) -> AsyncIterator[Rig]:
    """Opens a store; nothing runs behind the calls."""
    async with AsyncExitStack() as stack:
        lore = await stack.enter_async_context(roomlore.open(url, settings=settings, background=False))
        yield await beside(lore, stack, cache=cache, summarizer=summarizer, clock=clock)


async def summarise_all(lore: roomlore.Lore, room: str, summary: str) -> roomlore.Checkpoint:
    """Put a caller's summary of all that was said in force."""
    said = await lore.sessions.messages(room, limit=1)
    return await lore.sessions.checkpoint(room, summary, 0, said[-1].id)
