"""Groups that talk, and models that are scripted servers and evolve what is remembered of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

import roomlore
from roomlore import Lore, Message, Settings
from roomlore.core.memory.memory import Memory, MemoryKind
from roomlore_testkit.model_server import Asked, ModelServer
from tuned import apart, tuned

MODEL = "memory-evolve-model"
SECONDS = 30.0


@dataclass(frozen=True)
class Tongue:
    """The messages and memories of one language."""

    says: str
    people: Sequence[str]
    known: Sequence[str]
    better: Sequence[str]
    new: Sequence[str]
    why: str


CHINESE = Tongue(
    "第{}次：这周的新番《星之海》怎么样？画质很棒，周五晚上接着聊。",
    ("小林", "阿明", "老王"),
    (
        "成员主要是技术背景",
        "每周五晚上讨论新番动漫",
        "对新人友好，鼓励提问",
        "群里不讨论政治话题",
        "普遍认为《海底列车》被低估了",
    ),
    ("成员主要是前端工程师", "每周五晚上讨论新番动漫，偏好科幻题材"),
    ("每月第一个周六线下聚餐", "发链接要写一句简介", "大家习惯在午休时间活跃"),
    "新讨论里反复出现",
)
ENGLISH = Tongue(
    "Round {}: how was this week's anime? The pictures are great, let's go on on Friday evening.",
    ("Anna", "Ben", "Carla"),
    (
        "Most members have a technical background",
        "The group discusses new anime every Friday evening",
        "Newcomers are welcome and encouraged to ask",
        "Politics is off limits here",
        "They hold that Undersea Train is underrated",
    ),
    ("Most members are frontend engineers", "The group discusses new anime every Friday evening, mostly sci-fi"),
    ("They dine together once a month", "Links come with a line of summary", "Lunch is when people talk"),
    "it came up again and again",
)  # fmt: skip
both = pytest.mark.parametrize("said", [CHINESE, ENGLISH], ids=["zh", "en"])


def lines(*operations: dict[str, Any]) -> str:
    """An answer: a JSON object on each line."""
    return "\n".join(json.dumps(operation, ensure_ascii=False) for operation in operations)


def keep(handle: str) -> dict[str, Any]:
    return {"action": "keep", "old_id": handle}


def create(statement: str, *evidence: str, **more: Any) -> dict[str, Any]:
    return {"action": "create", "statement": statement, "change_reason": "seen", "evidence": list(evidence), **more}


def update(handle: str, statement: str, *evidence: str, **more: Any) -> dict[str, Any]:
    return {
        "action": "update",
        "old_id": handle,
        "statement": statement,
        "change_reason": "more",
        "evidence": list(evidence),
        **more,
    }


def delete(handle: str, reason: str = "over", evidence: Sequence[str] = ("c1",)) -> dict[str, Any]:
    return {"action": "delete", "old_id": handle, "change_reason": reason, "evidence": list(evidence)}


def settings(*servers: ModelServer, seconds: float = SECONDS, **more: Any) -> Settings:
    """The evolving model at these servers in order; without one it is not configured."""
    names = ["first", "second"][: len(servers)]
    providers = [{"name": name, "model_id": "tiny"} for name in names]
    return Settings(
        models={MODEL: {"internal": True, "providers": providers} if names else None},
        providers={name: {"base_url": server.url} for name, server in zip(names, servers, strict=True)},
        **{"model_timeout_seconds": seconds, "durable_work": "process", **more},
    )


@asynccontextmanager
async def opened(*servers: ModelServer, url: str = "sqlite://", **more: Any) -> AsyncIterator[Lore]:
    background, constants = more.pop("background", True), apart(more)
    with tuned(**constants):
        async with roomlore.open(url, settings=settings(*servers, **more), background=background) as lore:
            yield lore


async def talk(lore: Lore, said: Tongue, numbers: range, *, room: str = "g") -> None:
    await lore.messages.add(talk_of(said, numbers, room=room))


def talk_of(said: Tongue, numbers: range, *, room: str = "g") -> list[Message]:
    people = said.people
    return [
        Message(
            id=f"c{n}",
            room_id=room,
            sender_id=f"u{n % len(people)}",
            sender_name=people[n % len(people)],
            text=said.says.format(n),
        )
        for n in numbers
    ]


async def remember(lore: Lore, statements: Sequence[str], *, scope: str = "group:g") -> list[Memory]:
    """Memories of a group in this order."""
    return [await lore.memories.add(scope, one, kind=MemoryKind.GROUP) for one in statements]


async def active(lore: Lore, scope: str = "group:g") -> list[str]:
    """Return the active memories, the oldest lineage first."""
    found = await lore.memories.page(scope)
    return [memory.statement for memory in sorted(found, key=lambda one: (one.created_at, one.memory_id))]


async def mark(lore: Lore, room: str = "g", name: str = "evolution") -> int | None:
    async with lore.storage.reading(lore.tenant) as work:
        return (await work.progress.marks(room_id=room, names=[name])).get(name)


def block(asked: Asked, name: str) -> list[str]:
    """The lines of a block of the prompt."""
    return asked.prompt.rsplit(f"<{name}>\n", 1)[-1].split(f"\n</{name}>", 1)[0].splitlines()


async def elsewhere(url: str, do: Callable[[Lore], Awaitable[object]]) -> None:
    """Does something in another roomlore on the same database, on a loop of its own: a loop that waited for it and
    could not go on would keep whatever it has locked."""

    async def run() -> None:
        async with roomlore.open(url, settings=settings(), background=False) as other:
            await do(other)

    with ThreadPoolExecutor(1) as thread:
        await asyncio.get_running_loop().run_in_executor(thread, asyncio.run, run())
