"""A room where an agent replies, and the two providers of the model that summarises what was said with it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import roomlore
from roomlore import Lore, Memory, Message, Role, Settings
from roomlore_testkit.model_server import Asked, ModelServer

MODEL = "memory-summary-model"
AGENT = "agent-7"
GEMMA, QWEN = "google/gemma-3-12b-it", "Qwen/Qwen2.5-7B-Instruct"
SUMMARY = "小林周五七点在老地方聚餐。"
SOON = 1.0
"""Seconds that a provider gets in tests where one hangs: little, and enough under load."""
PATIENT = 60.0
"""Seconds that it gets in all others."""


def served_by(*servers: ModelServer, **more: Any) -> Settings:
    """The shipped model, with openrouter and then siliconflow at these addresses; the second may be left out."""
    both = zip(("openrouter", "siliconflow"), (*servers, servers[-1]), strict=False)
    return Settings(
        providers={name: {"base_url": server.url} for name, server in both},
        **{"summary_timeout_seconds": PATIENT, "durable_work": "process", **more},
    )


@asynccontextmanager
async def summarised(*servers: ModelServer, url: str = "sqlite://", **more: Any) -> AsyncIterator[Lore]:
    async with roomlore.open(url, settings=served_by(*servers, **more)) as lore:
        yield lore


def turn(number: int, *, room: str = "room-1", agent: str = AGENT, asked: str = "", said: str = "") -> list[Message]:
    """What a person asks and the agent replies."""
    named = {"room_id": room, "turn_id": f"t{number}"}
    asked, said = asked or f"第{number}次问：周五几点？", said or f"第{number}次答：七点，老地方。"
    return [
        Message(id=f"q{number}", sender_id="u1", sender_name="小林", text=asked, **named),
        Message(id=f"a{number}", sender_id=AGENT, sender_name="小助手", text=said, role=Role.ASSISTANT, **named),
    ]


async def talk(lore: Lore, *numbers: int, **how: Any) -> None:
    await lore.messages.add([message for number in numbers for message in turn(number, **how)])


async def until(lore: Lore, extractions: int) -> None:
    """Waits for as many extractions, whatever came of them."""
    async with asyncio.timeout(60):
        while sum(results(lore).values()) < extractions:  # noqa: ASYNC110 - a metric tells nobody
            await asyncio.sleep(0.01)


def results(lore: Lore) -> dict[str, int]:
    """How many extractions were `kept`, found `nothing`, or were a `fallback`."""
    counted = re.findall(r'^roomlore_extractions_total{result="(\w+)"} (\d+)', lore.prometheus().decode(), re.MULTILINE)
    return {result: int(count) for result, count in counted}


async def memories(lore: Lore, agent: str = AGENT) -> list[Memory]:
    """The agent's memories, the oldest first."""
    return list(reversed(await lore.memories.page(f"agent:{agent}")))


async def five_turns(lore: Lore, **how: Any) -> list[Memory]:
    """The memories of an agent that replied five times."""
    await talk(lore, *range(1, 6), **how)
    await until(lore, 1)
    return await memories(lore)


def read(asked: Asked) -> list[str]:
    """The lines that a model was given to read, without their times."""
    block = asked.prompt.split("<conversation>\n")[-1].split("\n</conversation>")[0]
    return [line.split("] ", 1)[1] for line in block.splitlines()]


def warned(caplog: pytest.LogCaptureFixture, *names: str) -> list[tuple[Any, ...]]:
    """Of each warning of roomlore what it names."""
    found = [record for record in caplog.records if record.name.startswith("roomlore")]
    return [
        tuple(getattr(one, name, None) for name in names) or (one.getMessage(),)
        for one in found
        if one.levelname == "WARNING"
    ]
