"""Fit by which signs a message decides something, and by which a question is open.

`python -m training.train_points ROOMS_DIR` writes `decides` and `open` into `core/evolution/offline/nets.json`. The
days are in `training/chats/days.jsonl`: `decisions` and `open` list groups of messages of which any one is right,
`either` messages that are not judged. Days that are `apart` are not fitted on; how well they are judged is printed,
beside days that are left out in turn. Open questions are fitted on the first rooms of the folder too, such as
`irc_train`: a question is open there if nobody else says something later in its conversation.
"""

import argparse
import asyncio
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from bench.digest import days_of, read_room

import roomlore
from roomlore import Message
from roomlore.core.digest.points import Span, is_asking
from roomlore.core.digest.talks import is_said
from roomlore.core.evolution.offline.nets import Net, net
from roomlore.core.models import Entry
from training.train_rules import Floats, logistic, write

_DAYS = Path(__file__).parent / "chats" / "days.jsonl"
_PARTS = 10
_ROOMS = 25
_PENALTY, _OPEN_PENALTY = 60.0, 40.0
_RARE, _OPEN_RARE = 25, 10
"""A sign of fewer messages tells nothing."""


@dataclass(frozen=True)
class Judged:
    """What is judged of a day: the ids of messages, the signs of each as rows, and which are right."""

    ids: Sequence[str]
    signs: Floats
    right: Floats


@dataclass(frozen=True)
class Day:
    """A day's messages and its labels."""

    row: dict[str, Any]
    span: Span
    entries: Sequence[Entry]

    def judged(self, label: str, signs: Callable[[Entry], Floats]) -> Judged:
        """Return the messages that may be of the label: those that ask for `open`, all for `decisions`."""
        entries = [entry for entry in self.entries if label == "decisions" or is_asking(entry)]
        wanted = {own for group in self.row[label] for own in group}
        ids = [entry.message.id for entry in entries]
        return Judged(ids, _rows(entries, signs), np.array([own in wanted for own in ids], np.float64))


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
    either = row.get("either", ())
    return Day(row, Span(spoken), [entry for entry in spoken if entry.message.id not in either])


async def _in_rooms(paths: Sequence[Path]) -> list[Judged]:
    """Return the questions of labelled rooms."""
    judged = []
    for path in paths:
        for day in days_of(*await read_room(path)):
            span, asked = Span([entry for entry in day.entries if is_said(entry)]), day.asked
            entries = [entry for entry in day.entries if entry.message.arrival in asked and is_said(entry)]
            right = [asked[entry.message.arrival] for entry in entries]
            ids = [entry.message.id for entry in entries]
            judged.append(Judged(ids, _rows(entries, span.open_signs), np.array(right, np.float64)))
    return [one for one in judged if one.ids]


def _rows(entries: Sequence[Entry], signs: Callable[[Entry], Floats]) -> Floats:
    return np.array([signs(entry) for entry in entries])


def _fitted(judged: Sequence[Judged], penalty: float, least: int) -> Net:
    """Return a regression on signs of equal spread, whose weights are then those of the signs as they are."""
    judged = [one for one in judged if one.ids]
    signs, right = np.vstack([one.signs for one in judged]), np.concatenate([one.right for one in judged])
    rare, mean, spread = (signs != 0).sum(0) < least, signs.mean(0), signs.std(0)
    spread[rare | (spread == 0)] = 1.0
    mean[0], spread[0], rare[0] = 0.0, 1.0, False
    weights = logistic((signs - mean) / spread * ~rare, right, penalty) * ~rare / spread
    weights[0] -= float(weights @ mean)
    return Net(hidden=np.zeros((0, weights.size + 1)), out=np.zeros(0), direct=weights)


def _score(name: str, days: Sequence[Day], picked: Sequence[Collection[str]], label: str) -> str:
    pairs = [(set(its), day.row[label]) for day, its in zip(days, picked, strict=True)]
    right = sum(any(own in group for group in groups) for its, groups in pairs for own in its)
    found = sum(not its.isdisjoint(group) for its, groups in pairs for group in groups)
    precision = right / max(sum(len(its) for its, _ in pairs), 1)
    recall = found / max(sum(len(groups) for _, groups in pairs), 1)
    mean = 2 * precision * recall / max(precision + recall, 1e-9)
    return f"{label}, {name}: precision {precision:.2f}, recall {recall:.2f}, F1 {mean:.2f}"


def _left_out(
    days: Sequence[Day], label: str, judged: Sequence[Judged], fitted: Callable[[Sequence[Judged]], Net]
) -> None:
    """Print how well days are judged by what is fitted on the others."""
    places = np.random.default_rng(1).permutation(len(days)) % _PARTS
    odds: list[Floats] = [np.zeros(0)] * len(days)
    for part in range(_PARTS):
        judge = fitted([one for one, place in zip(judged, places, strict=True) if place != part])
        for at in np.flatnonzero(places == part).tolist():
            odds[at] = judge.scores(judged[at].signs) if judged[at].ids else odds[at]
    for least in np.arange(-1.4, 0.6, 0.4):
        picked = [
            [own for own, value in zip(one.ids, its, strict=True) if value >= least]
            for one, its in zip(judged, odds, strict=True)
        ]
        print(_score(f"left out in turn, from {least:.1f}", days, picked, label))


async def main(rooms: Sequence[Path]) -> None:
    rows = [json.loads(line) for line in _DAYS.read_text("utf-8").splitlines()]
    days = [await _read(row) for row in rows]
    known, apart = ([day for day in days if bool(day.row.get("apart")) == flag] for flag in (False, True))
    others = await _in_rooms(rooms)
    decisions = [day.judged("decisions", day.span.signs) for day in known]
    questions = [day.judged("open", day.span.open_signs) for day in known]

    def decides(judged: Sequence[Judged]) -> Net:
        return _fitted(judged, _PENALTY, _RARE)

    def stays_open(judged: Sequence[Judged]) -> Net:
        return _fitted([*judged, *others], _OPEN_PENALTY, _OPEN_RARE)

    _left_out(known, "decisions", decisions, decides)
    _left_out(known, "open", questions, stays_open)
    write({"decides": decides(decisions), "open": stays_open(questions)})
    net.cache_clear()
    decided = [[entry.message.id for entry in day.entries if day.span.decides(entry)] for day in apart]
    print(_score("apart", apart, decided, "decisions"))
    still = [
        [entry.message.id for entry in day.entries if is_asking(entry) and day.span.is_open(entry)] for day in apart
    ]
    print(_score("apart", apart, still, "open"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", type=Path, help="a folder of labelled rooms")
    asyncio.run(main(sorted(parser.parse_args().rooms.glob("*.messages.jsonl"))[:_ROOMS]))
