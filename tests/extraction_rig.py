"""Rooms where agents reply, and models that are scripted servers, seen through `roomlore.open`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

import roomlore
from roomlore import Lore, Message, Role, Settings
from roomlore.core.memory.extraction import watermark
from roomlore.core.memory.memory import Evolution, Memory
from roomlore.core.memory.reading import without_times
from roomlore.services.extraction import EXTRACTION
from roomlore_testkit.model_server import Asked, ModelServer

MODEL = "memory-summary-model"
SOON = 1.5
"""Seconds that a provider gets in tests where one hangs: little, and enough under load."""
PATIENT = 60.0
"""Seconds that it gets in all others."""


@dataclass(frozen=True)
class Tongue:
    """The messages of one language. `mark`: how the model says that nothing is worth keeping."""

    asks: str
    replies: str
    summary: str
    mark: str
    long: str
    short: str


CHINESE = Tongue(
    "第{}次问：周五几点？", "第{}次答：七点，老地方。", "小林周五七点在老地方聚餐。", "无有效记忆", "记" * 150, "嗯"
)
ENGLISH = Tongue(
    "Question {}: when?", "Answer {}: at seven.", "Anna dines on Friday at seven.", "NO_MEMORY", "m" * 150, "ok"
)
both = pytest.mark.parametrize("said", [CHINESE, ENGLISH], ids=["zh", "en"])


def settings(*servers: ModelServer, seconds: float = PATIENT, **more) -> Settings:
    """The summary model at these servers in order, named `first`, `second`, ...; none wants a key."""
    names = ["first", "second", "third"][: len(servers)]
    return Settings(
        models={MODEL: {"internal": True, "providers": [{"name": name, "model_id": "tiny"} for name in names]}},
        providers={name: {"base_url": server.url} for name, server in zip(names, servers, strict=True)},
        **{"summary_timeout_seconds": seconds, "durable_work": "process", **more},
    )


def talk(said: Tongue, numbers: range, *, room: str = "r", agent: str = "bot") -> list[Message]:
    """For each number a question and the agent's reply to it."""
    messages = []
    for n in numbers:
        messages += [ask(n, said.asks.format(n), room=room, agent=agent), reply(n, said.replies.format(n), room, agent)]
    return messages


def ask(n: int, text: str, *, room: str = "r", agent: str = "bot", **more) -> Message:
    return Message(
        id=f"q{n}-{agent}",
        room_id=room,
        text=text,
        **{"sender_id": "u1", "sender_name": "Lin", "turn_id": f"t{n}", **more},
    )


def reply(n: int, text: str, room: str = "r", agent: str = "bot", **more) -> Message:
    return Message(
        id=f"a{n}-{agent}", room_id=room, sender_id=agent, text=text, role=Role.ASSISTANT, turn_id=f"t{n}", **more
    )


async def replies(lore: Lore, said: Tongue, count: int, *, first: int = 1, room: str = "r", agent: str = "bot") -> None:
    await lore.messages.add(talk(said, range(first, first + count), room=room, agent=agent))


async def until(met: Callable[[], Awaitable[bool]], *, seconds: float = 120) -> None:
    async with asyncio.timeout(seconds):
        while not await met():  # noqa: ASYNC110 - another process may do it
            await asyncio.sleep(0.01)


async def extracted(lore: Lore) -> None:
    """Waits until nothing is due any more."""

    async def settled() -> bool:
        async with lore.storage.reading() as work:
            return not await work.progress.any_noted(work=EXTRACTION)

    await until(settled)


async def memories(lore: Lore, agent: str = "bot") -> list[Memory]:
    """The agent's memories, the oldest first."""
    return list(reversed(await lore.memories.page(f"agent:{agent}")))


async def records(lore: Lore, agent: str = "bot") -> list[Evolution]:
    """Return the records of the agent's extractions, also of those that found nothing, in the order of the messages."""
    async with lore.storage.reading(lore.tenant) as work:
        found = await work.memories.evolutions(scope=f"agent:{agent}", before=None, limit=1000)
    return sorted(found, key=lambda record: (record.room_id, record.last_arrival, record.evolution_id))


async def mark(lore: Lore, room: str = "r", agent: str = "bot") -> int | None:
    async with lore.storage.reading(lore.tenant) as work:
        name = watermark(agent)
        return (await work.progress.marks(room_id=room, names=[name])).get(name)


def conversations(server: ModelServer) -> list[str]:
    """Return the text that the model was given to read, request by request."""
    return [conversation(asked) for asked in server.requests]


def conversation(asked: Asked) -> str:
    """Return the text that it was given to read, without the times."""
    return without_times(with_times(asked))


def with_times(asked: Asked) -> str:
    return asked.prompt.split("<conversation>\n")[-1].split("\n</conversation>")[0]


@asynccontextmanager
async def opened(
    *servers: ModelServer, url: str = "sqlite://", seconds: float = PATIENT, **more
) -> AsyncIterator[Lore]:
    async with roomlore.open(url, settings=settings(*servers, seconds=seconds, **more)) as lore:
        yield lore


def warnings_of(caplog: pytest.LogCaptureFixture, *names: str) -> Sequence[tuple]:
    """Of each warning of roomlore's its text and what it names."""
    return [
        (record.getMessage(), *(getattr(record, name, None) for name in names))
        for record in caplog.records
        if record.levelname == "WARNING" and record.name.startswith("roomlore")
    ]
