"""Group chats with known times, and what a context takes of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import roomlore
from roomlore import Candidate, Context, Lore, Message, Settings, Signals

GROUP = "group-1"
NINE = datetime(2026, 5, 4, 9, tzinfo=UTC)
EVERYTHING = {"strategy": "weighted", "relevance_threshold": 0.0, "max_context_messages": 200}
"""Settings with which a context shows its whole pool of candidates."""


def said(number: int, sender: str, text: str, *, minute: float | None = None, **more: Any) -> Message:
    at = NINE + timedelta(minutes=number if minute is None else minute)
    return Message(id=f"m{number}", sender_id=sender, text=text, **{"room_id": GROUP, "sent_at": at, **more})


TALK = [
    said(1, "ann", "怎么重置路由器的密码？"),
    said(2, "li", "周五晚上聚餐去哪儿？"),
    said(3, "bob", "按住重置键十秒", reply_to="m1"),
    said(4, "wang", "火锅怎么样", reply_to="m2"),
    said(5, "ann", "可以了，但还要旧的密码", reply_to="m3"),
    said(6, "li", "@wang 火锅可以，几点？", reply_to="m4"),
    said(7, "bob", "密码在路由器背面的贴纸上", reply_to="m5"),
]


@asynccontextmanager
async def group(
    *messages: Message, url: str = "sqlite://", strategies: Any = None, **settings: Any
) -> AsyncIterator[Lore]:
    async with roomlore.open(url, settings=Settings(**settings), strategies=strategies) as lore:
        await lore.messages.add(list(messages))
        yield lore


def ids(context: Context) -> list[str]:
    return [one.message.id for one in context.messages]


async def candidates(*messages: Message, **settings: Any) -> dict[str, Candidate]:
    """The pool for the last of these messages, by id."""
    async with group(*messages, **{**EVERYTHING, **settings}) as lore:
        context = await lore.context.build(GROUP, messages[-1].id)
    return {one.message.id: one for one in context.messages}


async def signals(candidate: Message, *messages: Message) -> Signals:
    """Those of the candidate for the last message."""
    found = (await candidates(candidate, *messages))[candidate.id].signals
    assert found is not None
    return found
