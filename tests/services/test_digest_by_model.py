"""Digests that a model writes: what it is shown, what is taken of its answer, and what is there if it fails."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import roomlore
from reply_rig import reply_settings
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.core.models import Message
from roomlore.wiring import Lore
from roomlore_testkit.model_server import Asked, Fails, Hangs, ModelServer
from tuned import apart, tuned

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
SAID = [
    ("ann", "Which database do we use for the invoices service?"),
    ("bo", "@ann postgres, the invoices service needs transactions"),
    ("小陈", "我们决定发布时间改到周五下午三点。"),
    ("小波", "好的，收到"),
]


def messages(room_id: str = "team") -> list[Message]:
    return [
        Message(
            id=f"m{n}",
            room_id=room_id,
            sender_id=who,
            text=text,
            sent_at=START + timedelta(minutes=n if n < 2 else 90 + n),
            reply_to=f"m{n - 1}" if n % 2 else None,
        )
        for n, (who, text) in enumerate(SAID)
    ]


@asynccontextmanager
async def opened(script: Any, **more: Any) -> AsyncIterator[tuple[Lore, ModelServer]]:
    async with ModelServer(script) as server:
        constants = apart(more)
        settings = reply_settings(server, digest_model="chat", **more)
        with tuned(**constants):
            async with roomlore.open("sqlite://", settings=settings, background=False) as lore:
                await lore.messages.add(messages())
                yield lore, server


def handles(asked: Asked) -> dict[str, str]:
    """The words of each message to its handle."""
    found = re.findall(r"^(c\d+) \[[^\]]+\] [^:]+: (.*)$", asked.prompt, re.MULTILINE)
    return {text.partition(": ")[2] or text: handle for handle, text in found}


def telling(*told: tuple[str, str]) -> Callable[[Asked], str]:
    """An answer with these sentences, each about the first message that holds a word."""

    def answer(asked: Asked) -> str:
        lines = []
        for word, text in told:
            cited = [handle for said, handle in handles(asked).items() if word in said]
            lines.append(json.dumps({"text": text, "evidence": cited[:1] or ["c99"]}, ensure_ascii=False))
        return "\n".join(lines)

    return answer


async def test_its_sentences_stand_with_the_messages_they_cite():
    script = telling(("transactions", "bo says invoices needs transactions."), ("决定", "发布改到周五下午三点。"))
    async with opened(script) as (lore, server):
        digest = await lore.digest("team", since=START)
        texts = {line.text: line for entry in digest.entries for line in entry.lines}
        assert texts["bo says invoices needs transactions."].message_id == "m1"
        decided = texts["发布改到周五下午三点。"]
        assert (decided.cited, decided.sender_id, decided.decides) == (("m2",), "小陈", True)
        assert (digest.model, digest.degraded) == ("p0/p0-model", None)
        assert digest.tokens <= 800
        assert all(f"[{i}]" in digest.to_prompt() for i in ("m1", "m2"))
        (asked,) = server.requests
        assert "postgres, the invoices service" in asked.prompt


async def test_a_line_that_no_message_supports_gives_way_to_the_messages_own_sentences():
    script = telling(("transactions", "bo says invoices costs 5000 dollars."), ("决定", "发布改到周五下午三点。"))
    async with opened(script) as (lore, _):
        digest = await lore.digest("team", since=START)
        told = digest.to_prompt()
        assert "5000" not in told
        assert "invoices service" in told
        assert "发布改到周五下午三点" in told
        assert digest.degraded is None


@pytest.mark.parametrize("answer", [Fails(), Hangs(), "no idea", "{}", json.dumps({"text": "x", "evidence": ["c99"]})])
async def test_without_a_usable_answer_it_is_made_as_without_a_model(answer):
    async with opened([answer] * 9, digest_timeout_seconds=0.5) as (lore, _):
        offline = await lore.digest("team", since=START, mode="offline")
        digest = await lore.digest("team", since=START)
        assert digest.entries == offline.entries
        assert digest.model is offline.model is offline.degraded is None
        assert "messages' own sentences" in digest.degraded


@pytest.mark.parametrize(("reader", "tongue"), [("ann", "in English"), ("小陈", "一律用中文"), (None, "in English")])
async def test_it_is_asked_in_the_language_of_the_reader(reader, tongue):
    async with opened([]) as (lore, server):
        await lore.messages.add(
            [Message(id="z", room_id="team", sender_id="bo", text="see the invoices page", sent_at=START)]
        )
        await lore.digest("team", since=START, for_user=reader)
        assert tongue in server.requests[0].prompt


async def test_modes(monkeypatch):
    async with opened([]) as (lore, server):
        await lore.digest("team", since=START, mode="offline")
        assert server.requests == []
        with pytest.raises(InvalidInput, match="mode"):
            await lore.digest("team", mode="fast")
        await lore.digest("team", since=START + timedelta(days=9))
        assert server.requests == [], "nothing was said, so nothing is asked"
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(messages())
        assert (await lore.digest("team", since=START)).degraded is None
        with pytest.raises(ModelUnavailable, match="'rules'"):
            await lore.digest("team", since=START, mode="llm")


async def test_it_is_shown_what_the_viewer_may_see_alone():
    async with opened([]) as (lore, server):
        await lore.rooms.set_kind("team", "private")
        await lore.rooms.add_members("team", [roomlore.Member("eve", joined_at=START + timedelta(minutes=60))])
        await lore.digest("team", since=START, viewer="user:eve")
        (asked,) = server.requests
        assert "发布时间" in asked.prompt
        assert "invoices" not in asked.prompt


async def test_forbidden_texts_are_looked_for_without_asking_a_model():
    async with opened([]) as (lore, server):
        await lore.evaluation.run(["team"], forbidden=[{"text": "postgres", "viewer": "room:lobby"}])
        assert server.requests == []


async def test_a_small_digest_still_fits():
    script = telling(("transactions", "bo says invoices needs transactions. " * 3), ("决定", "发布改到周五下午三点。"))
    async with opened(script) as (lore, _):
        for most in (50, 60, 80):
            assert (await lore.digest("team", since=START, max_tokens=most)).tokens <= most
