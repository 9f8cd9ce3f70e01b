"""Replies over a scripted model on a loopback socket."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import roomlore
from roomlore import Message, Reply, ReplyEvent, ReplyText, RoomloreError, Settings
from roomlore.ports.memories import Recall
from roomlore.services.replies import ReplyService
from roomlore_testkit.model_server import Asked, ModelServer, Script
from tuned import apart, tuned


def reply_settings(*servers: ModelServer, model: str = "{name}-model", **more: Any) -> Settings:
    """A model `chat` whose providers are these servers, in order. `model`: its name there."""
    names = [f"p{number}" for number in range(len(servers))]
    return Settings(
        providers={name: {"base_url": server.url} for name, server in zip(names, servers, strict=True)},
        models={"chat": {"providers": [{"name": name, "model_id": model.format(name=name)} for name in names]}},
        **more,
    )


@asynccontextmanager
async def replying(
    *scripts: Script, url: str = "sqlite://", strategies: Mapping[str, Any] | None = None, **more: Any
) -> AsyncIterator[tuple[roomlore.Lore, ModelServer]]:
    """roomlore with one scripted provider after another, and the first of them."""
    async with AsyncExitStack() as stack:
        stack.enter_context(tuned(**apart(more)))
        servers = [await stack.enter_async_context(ModelServer(script)) for script in scripts or ((),)]
        settings = reply_settings(*servers, **more)
        lore = await stack.enter_async_context(roomlore.open(url, settings=settings, strategies=strategies))
        yield lore, servers[0]


def asks(text: str = "Green or black tea?", message_id: str = "q", sender: str = "ann", **more: Any) -> Message:
    return Message(id=message_id, room_id=more.pop("room_id", "r"), sender_id=sender, text=text, **more)


async def gathered(lore: roomlore.Lore, message: Message, **more: Any) -> list[ReplyEvent]:
    return [event async for event in lore.replies.stream(message, **more)]


async def until_broken(events: AsyncIterator[ReplyEvent]) -> tuple[list[ReplyEvent], Exception | None]:
    """Return the events before the error, and the error."""
    seen: list[ReplyEvent] = []
    try:
        async for event in events:
            seen.append(event)  # noqa: PERF401 - a comprehension would lose them with the error
    except RoomloreError as error:
        return seen, error
    return seen, None


def recalling(lore: roomlore.Lore, *recalls: Recall) -> ReplyService:
    """The replies of this roomlore with hooks that bring memories."""
    return ReplyService(
        tenant=lore.tenant,
        parts=lore._resources.replies,
        messages=lore.messages,
        contexts=lore.context,
        sessions=lore.sessions,
        recalls=recalls,
    )


def kinds(events: Sequence[ReplyEvent]) -> list[str]:
    """Names of the events, runs of text as one."""
    names = [type(event).__name__ for event in events]
    return [name for place, name in enumerate(names) if name != "ReplyText" or names[place - 1] != name]


def text_of(events: Sequence[ReplyEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReplyText))


def last(events: Sequence[ReplyEvent]) -> Reply:
    found = events[-1]
    assert isinstance(found, Reply)
    return found


def chat(asked: Asked) -> list[tuple[str, str]]:
    """The messages a model was sent, without times, but for what it was told to be."""
    sent = [(m["role"], untimed(m["content"])) for m in asked.body["messages"] if m["role"] != "system"]
    return [(role, text) for role, text in sent if text]


_TIMES = re.compile(r"^\[(?:\d\d:\d\d\] ?|.*\]\n?)|(?<=\S) \d\d:\d\d(?=\):)", re.MULTILINE)


def untimed(text: str) -> str:
    """Return a text of a prompt without times and without lines of notes."""
    return _TIMES.sub("", text).removesuffix("\n")


def system(asked: Asked) -> str:
    return str(next((m["content"] for m in asked.body["messages"] if m["role"] == "system"), ""))


def counted(lore: roomlore.Lore, line: str) -> float:
    """A figure of the Prometheus text, 0 where it is not there."""
    rows = [row for row in lore.prometheus().decode().splitlines() if row.startswith(line + " ")]
    return float(rows[0].rsplit(" ", 1)[1]) if rows else 0.0


async def until_nothing_waits(lore) -> None:
    """Wait until everything that waited for the database is stored."""
    async with asyncio.timeout(20):
        while True:
            if not lore._resources.replies.later.of_room(lore.tenant, "r"):
                return
            await asyncio.sleep(0.02)
