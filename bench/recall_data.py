"""Facts to recall from: each room's messages are its facts, and the gold of a question those it should bring back.

Confidences are drawn from one uniform distribution for gold and distractors alike, so they say nothing: what a method
loses by them is the price of its weighing them.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from roomlore.core.memory.memory import Memory, MemoryKind

_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class RoomOfFacts:
    """`messages`: as in the file, in their order; `facts`: one for each, the later ones changed later."""

    name: str
    messages: Sequence[dict[str, Any]]
    facts: Sequence[Memory]
    questions: Sequence[Question]


def sets_of(folder: Path) -> dict[str, Path]:
    """The sets in a folder by name, or the folder itself where it is one."""
    folders = [folder] if (folder / "messages.jsonl").exists() else sorted(folder.iterdir())
    sets = {folder_.name: folder_ for folder_ in folders if (folder_ / "messages.jsonl").exists()}
    if not sets:
        raise SystemExit(f"{folder} holds no set; a set is a folder with messages.jsonl, queries.jsonl and gold.jsonl.")
    return sets


def rooms_of(folder: Path, *, most: int | None = None, seed: int = 0) -> Iterator[RoomOfFacts]:
    """The rooms of a set; cleaned questions where the set has them. `most`: questions a room."""
    suffix = "_clean" if (folder / "queries_clean.jsonl").exists() else ""
    gold = {row["qid"]: frozenset(row["gold"]) for row in rows(folder / f"gold{suffix}.jsonl")}
    messages, questions = defaultdict(list), defaultdict(list)
    for row in rows(folder / "messages.jsonl"):
        messages[row["room_id"]].append(row)
    for row in rows(folder / f"queries{suffix}.jsonl"):
        if gold.get(row["qid"]):
            questions[row["room_id"]].append(Question(row["query"], gold[row["qid"]]))
    for name, asked_of_room in questions.items():
        yield RoomOfFacts(name, messages[name], facts_of(messages[name], seed), asked_of_room[:most])


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def facts_of(messages: Sequence[dict[str, Any]], seed: int) -> list[Memory]:
    draw = random.Random(f"{seed} {messages[0]['room_id']}")
    return [
        fact(row["id"], f"{row['sender_id']}: {row['text']}", confidence=draw.random(), place=place)
        for place, row in enumerate(messages)
    ]


def fact(memory_id: str, statement: str, *, confidence: float, place: int) -> Memory:
    """The facts of a room are of one scope."""
    at = _LONG_AGO + timedelta(seconds=place)
    return Memory(
        memory_id=memory_id,
        lineage_id=memory_id,
        scope="user:somebody",
        kind=MemoryKind.FACT,
        statement=statement,
        confidence=confidence,
        created_at=at,
        updated_at=at,
        supported_at=at,
    )


def say(passed: bool, line: str) -> None:
    """Return True if a figure reaches its goal."""
    print(f"{'pass' if passed else 'FAIL'}  {line}", flush=True)
