"""Fit by which signs a message decides something.

Writes `decides` into `core/evolution/offline/nets.json`. The days are in `training/chats/days.jsonl`:
`decisions` lists groups of messages of which any one is right, `either` those that are not judged; `open`, the open
questions, which rules find. Days that are `apart` are not fitted on; how well they are judged is printed, beside days
that are left out in turn.
"""

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

import roomlore
from roomlore import Message
from roomlore.core.digest.points import Span, is_asking
from roomlore.core.digest.talks import is_said
from roomlore.core.evolution.offline.nets import Net, net
from roomlore.core.models import Entry
from training.train_rules import Floats, logistic, write

_DAYS = Path(__file__).parent / "chats" / "days.jsonl"
_PARTS = 10
_PENALTY = 60.0
_RARE = 25
"""A sign of fewer messages tells nothing."""


@dataclass(frozen=True)
class Day:
    """A day's messages, with the signs of each as rows, and its labels."""

    row: dict[str, Any]
    span: Span
    entries: Sequence[Entry]
    signs: Floats

    @property
    def ids(self) -> list[str]:
        return [entry.message.id for entry in self.entries]

    @property
    def right(self) -> Floats:
        wanted = {own for group in self.row["decisions"] for own in group}
        return np.array([own in wanted for own in self.ids], np.float64)


async def _read(row: dict[str, Any]) -> Day:
    messages = [
        Message(
            id=message["id"],
            room_id=row["id"],
            sender_id=message["sender"],
            sender_name=message["sender"],
            text=message["text"],
            sent_at=datetime.fromisoformat(message["at"]),
            reply_to=message.get("reply_to"),
        )
        for message in row["messages"]
    ]
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(messages)
        async with lore.storage.reading("default") as work:
            entries: list[Entry] = await work.messages.tail(room_id=row["id"], limit=len(messages))
    spoken = [entry for entry in entries if is_said(entry)]
    span, either = Span(spoken), row.get("either", ())
    judged = [entry for entry in spoken if entry.message.id not in either]
    return Day(row, span, judged, np.array([span.signs(entry) for entry in judged]))


def _fitted(days: Sequence[Day]) -> Net:
    """Return a regression on signs of equal spread, whose weights are then those of the signs as they are."""
    signs, right = np.vstack([day.signs for day in days]), np.concatenate([day.right for day in days])
    spread = signs.std(0)
    rare = (signs != 0).sum(0) < _RARE
    mean, spread = signs.mean(0), np.where(rare, 1.0, spread)
    mean[0], spread[0], rare[0] = 0.0, 1.0, False
    weights = logistic((signs - mean) / spread * ~rare, right, _PENALTY) * ~rare / spread
    weights[0] -= float(weights @ mean)
    return Net(hidden=np.zeros((0, weights.size + 1)), out=np.zeros(0), direct=weights)


def _score(name: str, days: Sequence[Day], picked: Sequence[Collection[str]], label: str = "decisions") -> str:
    pairs = [(set(its), day.row[label]) for day, its in zip(days, picked, strict=True)]
    right = sum(any(own in group for group in groups) for its, groups in pairs for own in its)
    found = sum(not its.isdisjoint(group) for its, groups in pairs for group in groups)
    precision = right / max(sum(len(its) for its, _ in pairs), 1)
    recall = found / max(sum(len(groups) for _, groups in pairs), 1)
    mean = 2 * precision * recall / max(precision + recall, 1e-9)
    return f"{label}, {name}: precision {precision:.2f}, recall {recall:.2f}, F1 {mean:.2f}"


async def main() -> None:
    rows = [json.loads(line) for line in _DAYS.read_text("utf-8").splitlines()]
    days = [await _read(row) for row in rows]
    known, apart = ([day for day in days if bool(day.row.get("apart")) == flag] for flag in (False, True))
    places = np.random.default_rng(1).permutation(len(known)) % _PARTS
    odds: list[Floats] = [np.zeros(0)] * len(known)
    for part in range(_PARTS):
        fitted = _fitted([day for day, place in zip(known, places, strict=True) if place != part])
        for at in np.flatnonzero(places == part):
            odds[at] = fitted.scores(known[at].signs)
    for least in np.arange(-1.4, 0.6, 0.4):
        picked = [
            [own for own, value in zip(day.ids, its, strict=True) if value >= least]
            for day, its in zip(known, odds, strict=True)
        ]
        print(_score(f"left out in turn, from {least:.1f}", known, picked))
    write({"decides": _fitted(known)})
    net.cache_clear()
    decided = [[entry.message.id for entry in day.entries if day.span.decides(entry)] for day in apart]
    print(_score("apart", apart, decided))
    still = [
        [entry.message.id for entry in day.entries if is_asking(entry) and day.span.is_open(entry)] for day in apart
    ]
    print(_score("apart, by rules", apart, still, "open"))


if __name__ == "__main__":
    asyncio.run(main())
