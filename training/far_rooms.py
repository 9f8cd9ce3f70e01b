"""Training data for the models of `roomlore.core.far`: questions asked later, and messages that need nothing far."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.predict_asked import QUESTION_ID, SharedEmbedder, by_room, put, rooms
from bench.predict_retrieval import BATCH, messages, rows

import roomlore
from roomlore.core import DEFAULT_TENANT
from roomlore.core.far import MOST_HITS, evidence_signs, signs
from roomlore.core.models import Role, Target

_WINDOW = 20
_SETTINGS = roomlore.Settings(enable_async_data_collection=False)


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as a context meets it. `signs`: those of `need`. `starts`: it begins its conversation.

    Of a question `candidates` has the signs of `weigh` by arrival, and `wanted` by arrival the parts of the answer that
    a message holds, of which there are `parts` in all.
    """

    signs: tuple[float, ...]
    starts: bool = False
    candidates: Mapping[int, Sequence[float]] = field(default_factory=dict)
    wanted: Mapping[int, frozenset[int]] = field(default_factory=dict)
    parts: int = 0


async def asked(folder: Path, suffix: str, embedder: SharedEmbedder | None) -> list[Seen]:
    """Every question of a folder; by words alone where there is no embedder."""
    gold = {line["qid"]: line for line in _lines(folder / f"gold{suffix}.jsonl")}
    said, found = by_room(folder / "messages.jsonl"), []
    for room in rooms(said, rows(folder / f"queries{suffix}.jsonl")):
        async for question in put(room, embedder):
            target = await _target(question.lore, question.room_id, QUESTION_ID)
            search = question.lore.messages._search  # noqa: SLF001 - contexts search the past by it
            earlier = await search.before(target.entry, limit=MOST_HITS)
            answer = gold[question.qid]
            found.append(
                Seen(
                    tuple(signs(target)),
                    candidates=evidence_signs(target.entry.link, earlier),
                    wanted=_wanted(answer, room.messages[: question.there]),
                    parts=len(answer.get("gold") or answer["include"]),
                )
            )
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    return list(rows(path))


def _wanted(answer: Mapping[str, Any], said: Sequence[roomlore.Message]) -> dict[int, frozenset[int]]:
    """By arrival: the gold messages, a part each, or where the gold is patterns those that a text holds."""
    if answer.get("gold"):
        parts = {message_id: part for part, message_id in enumerate(answer["gold"])}
        return {place: frozenset({parts[one.id]}) for place, one in enumerate(said, 1) if one.id in parts}
    patterns = [re.compile(pattern, re.IGNORECASE) for pattern in answer["include"]]
    found = {
        place: frozenset(part for part, pattern in enumerate(patterns) if pattern.search(one.text))
        for place, one in enumerate(said, 1)
    }
    return {place: parts for place, parts in found.items() if parts}


async def threads(paths: Iterable[Path]) -> list[Seen]:
    """Every labelled message of these rooms (`*.messages.jsonl`)."""
    found = []
    for path in paths:
        labels = {line["id"]: line for line in _lines(path.with_name(path.name.replace(".messages.", ".gold.")))}
        begun: set[str | None] = {None}
        async with roomlore.open("sqlite://", settings=_SETTINGS, background=False) as lore:
            said = list(messages(path))
            for start in range(0, len(said), BATCH):
                await lore.messages.add(said[start : start + BATCH])
            for one in said:
                label = labels[one.id]
                starts = label["conv"] is None or label["conv"] not in begun
                begun.add(label["conv"])
                if label["annotated"] and one.role is not Role.SYSTEM:
                    found.append(Seen(tuple(signs(await _target(lore, one.room_id, one.id))), starts=starts))
    return found


async def _target(lore: roomlore.Lore, room_id: str, message_id: str) -> Target:
    async with lore.storage.reading(DEFAULT_TENANT) as work:
        target = await work.messages.target(room_id=room_id, message_id=message_id, window=_WINDOW)
    assert target is not None
    return target
