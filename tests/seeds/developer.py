"""Facts about a developer, and what they talk of."""

from collections.abc import Mapping, Sequence
from typing import Any

import roomlore
from roomlore import Lore, Recollection, Settings

ANN = "user:ann"
PYTEST = "Prefers pytest for testing"
FASTAPI = "Expert in Python and FastAPI"
HINTS = "Likes type hints in Python"
DOCKER = "Uses Docker for containerization"
REACT = "Builds the frontend with React"
FACTS = (PYTEST, FASTAPI, HINTS, DOCKER, REACT)
PROJECT = ("我在做一个 Python 项目", "使用 FastAPI 和 SQLAlchemy", "怎么写测试？")
LITERAL = Settings(similarity_scale="literal")
"""The cosine counts as it is."""


def talk(*texts: str) -> list[dict[str, Any]]:
    """What the user says, each but the last with an answer."""
    said = []
    for text in texts:
        said += [{"role": "user", "content": text}, {"role": "assistant", "content": "好的"}]
    return said[:-1]


def calls_tool(text: str = "") -> list[dict[str, Any]]:
    """An answer that calls a tool, and the tool's result, both with this text."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "tool", "content": text, "tool_call_id": "c1"},
    ]


async def know(lore: Lore, facts: Mapping[str, float] | Sequence[str] = FACTS) -> None:
    given = facts if isinstance(facts, Mapping) else dict.fromkeys(facts, 0.5)
    for statement, confidence in given.items():
        await lore.memories.add(ANN, statement, confidence=confidence)


def ranked(found: Recollection) -> list[str]:
    return [one.memory.statement for one in found.facts]


def similar(found: Recollection) -> set[str]:
    """What has any similarity to the conversation."""
    return {one.memory.statement for one in found.facts if one.similarity > 0}


async def recalled(messages: Sequence[Mapping[str, Any]], settings: Settings = LITERAL, **how: Any) -> Recollection:
    """What a new roomlore that knows the facts recalls."""
    async with roomlore.open("sqlite://", settings=settings) as lore:
        await know(lore)
        return await lore.recall.build([ANN], messages, **how)
