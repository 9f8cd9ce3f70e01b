"""Compare what `roomlore eval` says of rooms with the truth.

`python -m bench own-rooms SET_DIR` gives the labelled replies of a half of the messages to roomlore as platform
replies, evaluates the room, and compares with the contexts of the other half, whose replies only the labels know.
"""

import argparse
import json
import random
import time
from dataclasses import replace
from pathlib import Path

import roomlore
from roomlore.core.models import Message, Role
from roomlore.core.records import Bad
from roomlore_importers import open_import

_SUFFIX = ".messages.jsonl"
_MAX = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set_dir", type=Path, help="rooms with labels (`parents`)")
    parser.add_argument("--rooms", type=int, default=10)
    parser.add_argument("--sample", type=int, default=100)


async def run(arguments: argparse.Namespace) -> None:
    hits = cases = true_hits = true_cases = 0
    began = time.perf_counter()
    for path in sorted(arguments.set_dir.glob("*" + _SUFFIX))[: arguments.rooms]:
        with open_import(path, "jsonl") as export:
            messages = [item.message for item in export if not isinstance(item, Bad)]
        parents = _parents(path, messages)
        chance = random.Random(path.name)
        with_reply = {message_id for message_id in parents if chance.random() < 0.5}
        given = [
            replace(message, reply_to=parents[message.id] if message.id in with_reply else None) for message in messages
        ]
        async with roomlore.open("sqlite://", background=False) as lore:
            await lore.messages.add(given)
            report = await lore.evaluation.run(sample=arguments.sample)
            hits, cases = hits + report.found.hits, cases + report.found.cases
            for message_id in parents.keys() - with_reply:
                options = {"strategy": "threaded", "max_messages": _MAX}
                context = await lore.context.build(messages[0].room_id, message_id, **options)  # type: ignore[arg-type]
                true_hits += parents[message_id] in {message.message.id for message in context.messages}
                true_cases += 1
        print(
            f"{path.name}: {hits / max(cases, 1):.1%} said, {true_hits / max(true_cases, 1):.1%} true so far",
            flush=True,
        )
    print(f"said {hits / cases:.1%} of {cases}, true {true_hits / true_cases:.1%} of {true_cases}")
    print(f"{time.perf_counter() - began:.0f} s")


def _parents(path: Path, messages: list[Message]) -> dict[str, str]:
    """Return the newest labelled message that each labelled message answers, if it comes before it."""
    place = {message.id: number for number, message in enumerate(messages) if message.role is not Role.SYSTEM}
    parents: dict[str, str] = {}
    with path.with_name(path.name.replace(_SUFFIX, ".gold.jsonl")).open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            earlier = [
                parent_id
                for parent_id in row["parents"]
                if parent_id in place and place[parent_id] < place.get(row["id"], 0)
            ]
            if row["annotated"] and earlier:
                parents[row["id"]] = max(earlier, key=lambda parent_id: place[parent_id])
    return parents
