"""What the models of `roomlore.core.far` learn from: questions asked later, and messages that need nothing far."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
import re

import numpy as np

import roomlore
from bench.predict_asked import QUESTION_ID, Asked, SharedEmbedder, by_room, put, rooms
from bench.predict_retrieval import BATCH, messages, rows
from roomlore.core.far import MOST_HITS, evidence_signs, signs
from roomlore.core.models import DEFAULT_TENANT, Target


@dataclass(frozen=True, slots=True)
class Seen:
    """A message as a context meets it. `signs`: those of `need`. `starts`: nothing before it belongs to it.

    `candidates`: of each candidate its arrival and the signs of `weigh`; `mates`: how likely each is of the thread.
    `wanted`: by arrival what it holds of what is asked for, of which there are `parts` in all.
    """

    signs: tuple[float, ...]
    starts: bool = False
    candidates: Mapping[int, Sequence[float]] | None = None
    wanted: Mapping[int, frozenset[int]] | None = None
    parts: int = 0


async def look(lore: roomlore.Lore, room_id: str, message_id: str) -> Target:
    async with lore.storage.reading() as work:
        target = await work.threads.target(tenant=DEFAULT_TENANT, room_id=room_id, message_id=message_id, window=20)
    assert target is not None
    return target


async def asked(folder: Path, suffix: str, embedder: SharedEmbedder | None) -> list[Seen]:
    """Every question of a folder with gold."""
    gold = {line["qid"]: line for line in rows(folder / f"gold{suffix}.jsonl")}
    said, found = by_room(folder / "messages.jsonl"), []
    for room in rooms(said, rows(folder / f"queries{suffix}.jsonl")):
        async for question in put(room, embedder):
            target = await look(question.lore, question.room_id, QUESTION_ID)
            earlier = await question.lore.messages._search.before(target.entry, limit=MOST_HITS)
            wanted = _wanted(gold[question.qid], room.messages[: question.there])
            found.append(
                Seen(
                    tuple(signs(target)),
                    candidates=evidence_signs(target.entry.link, earlier),
                    wanted=wanted,
                    parts=len(gold[question.qid].get("gold") or gold[question.qid]["include"]),
                )
            )
    return found


def _wanted(gold, said):
    if gold.get("gold"):
        parts = {name: part for part, name in enumerate(gold["gold"])}
        return {place: frozenset({parts[one.id]}) for place, one in enumerate(said, 1) if one.id in parts}
    found: dict[int, set[int]] = {}
    for part, pattern in enumerate(gold["include"]):
        for place, one in enumerate(said, 1):
            if re.search(pattern, one.text, re.I):
                found.setdefault(place, set()).add(part)
    return {place: frozenset(parts) for place, parts in found.items()}


async def threads(folder: Path) -> list[Seen]:
    found = []
    for path in sorted(folder.glob("*.messages.jsonl")):
        labels = {line["id"]: line for line in rows(Path(str(path).replace(".messages.", ".gold.")))}
        seen_convs = set()
        async with roomlore.open(
            "sqlite://", settings=roomlore.Settings(enable_async_data_collection=False), background=False
        ) as lore:
            said = list(messages(path))
            for start in range(0, len(said), BATCH):
                await lore.messages.add(said[start : start + BATCH])
            for one in said:
                label = labels[one.id]
                starts = label["conv"] not in seen_convs or label["conv"] is None
                seen_convs.add(label["conv"])
                if label["annotated"] and one.role.value != "system":
                    found.append(Seen(tuple(signs(await look(lore, one.room_id, one.id))), starts=starts))
    return found
