"""The shipped model on our own labelled Chinese rooms: far better than the plain window, in the same run."""

import json
from pathlib import Path
from statistics import fmean

import pytest

import roomlore
from roomlore.core.records import from_record

ROOMS = Path(__file__).parents[2] / "bench" / "data" / "zh_room"
K = 20


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def chosen(path: Path, strategy: str) -> dict[str, set[str]]:
    found = {}
    settings = roomlore.Settings(enable_async_data_collection=False)
    async with roomlore.open("sqlite://", settings=settings) as lore:
        for row in rows(path):
            message = from_record(row).message
            await lore.messages.add(message)
            context = await lore.context.build(message.room_id, message.id, strategy=strategy, max_messages=K)
            found[message.id] = {candidate.message.id for candidate in context.messages}
    return found


def f1(gold: list[dict], people: set[str], found: dict[str, set[str]]) -> tuple[float, float]:
    """(mean F1 over messages that have earlier ones in their conversation, share of parents shown)."""
    earlier: dict[str, list[str]] = {}
    scores, parents = [], []
    for label in gold:
        want = set(earlier.get(label["conv"], ()))
        if label["id"] in people and label["conv"] is not None:
            if label["annotated"] and want:
                hits = len(want & found[label["id"]])
                scores.append(2 * hits / (len(want) + len(found[label["id"]])))
                answered = (set(label["parents"]) - {label["id"]}) & people
                parents += [parent in found[label["id"]] for parent in answered]
            earlier.setdefault(label["conv"], []).append(label["id"])
    return fmean(scores), fmean(parents)


@pytest.mark.parametrize("room", ["dev_group", "neighbours", "hobby"])
async def test_threads_beat_the_plain_window(room):
    path = ROOMS / f"{room}.messages.jsonl"
    gold = rows(ROOMS / f"{room}.gold.jsonl")
    people = {row["id"] for row in rows(path) if row["role"] == "user"}
    threaded, parents = f1(gold, people, await chosen(path, "threaded"))
    plain, _ = f1(gold, people, await chosen(path, "recent"))
    measured = f"threaded F1 {threaded:.1%}, parents shown {parents:.1%}, last {K} F1 {plain:.1%}"
    assert threaded > plain + 0.1, measured
    assert parents > 0.85, measured
