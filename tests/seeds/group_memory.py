"""A group that talks, and a scripted model that evolves its memories."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import roomlore
from roomlore import Lore, Message, Settings
from roomlore_testkit.model_server import Asked, ModelServer

GROUP = "group_test_001"
KNOWN = (
    "群组成员主要是技术背景",
    "每周五晚上讨论新番动漫",
    "对新人友好，鼓励提问",
    "不讨论政治话题",
    "大家普遍认为《海底列车》被低估了",
)
MODEL = "memory-evolve-model"


def model_at(server: ModelServer | None, **more: Any) -> Settings:
    """Settings whose evolving model is this server; none without one."""
    if server is None:
        return Settings(durable_work="process", **more)
    return Settings(
        models={MODEL: {"internal": True, "providers": [{"name": "local", "model_id": "gemini-2.5-flash-preview"}]}},
        providers={"local": {"base_url": server.url}},
        **{"durable_work": "process", "evolve_people": False, **more},
    )


@asynccontextmanager
async def evolving(server: ModelServer | None = None, **more: Any) -> AsyncIterator[Lore]:
    own = {name: more.pop(name) for name in ("embedder", "vectors") if name in more}
    background = more.pop("background", True)
    async with roomlore.open("sqlite://", settings=model_at(server, **more), background=background, **own) as lore:
        yield lore


def jsonl(*items: dict[str, Any]) -> str:
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in items)


def keep(old_id: str) -> dict[str, Any]:
    return {"action": "keep", "old_id": old_id}


def create(statement: str, *evidence: str, reason: str = "多次讨论中验证的稳定特征", **more: Any) -> dict[str, Any]:
    return {
        "action": "create",
        "statement": statement,
        "change_reason": reason,
        "evidence": list(evidence or ("c1",)),
        **more,
    }


def update(old_id: str, statement: str, *evidence: str, reason: str = "新讨论明确了偏好类型") -> dict[str, Any]:
    cited = list(evidence or ("c1",))
    return {"action": "update", "old_id": old_id, "statement": statement, "change_reason": reason, "evidence": cited}


def delete(old_id: str, *evidence: str, reason: str = "已经不再如此") -> dict[str, Any]:
    return {"action": "delete", "old_id": old_id, "change_reason": reason, "evidence": list(evidence)}


def said(texts: Sequence[str], *, first: int = 1, group: str = GROUP, ago: Sequence[float] = ()) -> list[Message]:
    """A message of each text, by users in turn, so many days ago."""
    now = datetime.now(UTC)
    days = ago or [(len(texts) - at) / 10_000 for at in range(len(texts))]
    people = "ABCD"
    return [
        Message(
            id=f"msg-{first + at}",
            room_id=group,
            sender_id=f"user-{people[at % 4]}",
            sender_name=f"User {people[at % 4]}",
            text=text,
            sent_at=now - timedelta(days=days[at]),
        )
        for at, text in enumerate(texts)
    ]


async def talk(lore: Lore, texts: Sequence[str], **how: Any) -> None:
    await lore.messages.add(said(texts, **how))


async def remember(lore: Lore, statements: Sequence[str], *, group: str = GROUP) -> list[str]:
    """Memories of the group, in this order; returns their ids."""
    kind = roomlore.MemoryKind.GROUP
    return [(await lore.memories.add(f"group:{group}", one, kind=kind)).memory_id for one in statements]


async def active(lore: Lore, *, group: str = GROUP) -> list[str]:
    found = await lore.memories.page(f"group:{group}")
    return [one.statement for one in sorted(found, key=lambda one: (one.created_at, one.memory_id))]


def block(asked: Asked, name: str) -> list[str]:
    """The lines of a block of the prompt that a model got."""
    return asked.prompt.rsplit(f"<{name}>\n", 1)[-1].split(f"\n</{name}>", 1)[0].splitlines()
