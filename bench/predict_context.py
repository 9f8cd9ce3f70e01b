"""Writes, for every message of a folder of rooms, the context roomlore would show and the message it links to.

Messages are fed one at a time, each room into a fresh store, and a message's context is asked for before the next one
is seen. Gold files are never opened. The output is what `score_context.py` of the evaluation kit reads.
"""

import argparse
import json
import time
from pathlib import Path

import roomlore
from roomlore.core.records import Bad
from roomlore.services.contexts import STRATEGIES
from roomlore_importers import open_import

SUFFIX = ".messages.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("set_dir", type=Path)
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--k", type=int, default=20, help="at most so many messages are selected")
    parser.add_argument("--strategy", default="threaded", choices=tuple(STRATEGIES))
    parser.add_argument("--defaults", action="store_true", help="with all default settings; else threads alone")


async def run(arguments: argparse.Namespace) -> None:
    arguments.out_dir.mkdir(parents=True, exist_ok=True)
    paths = sorted(arguments.set_dir.glob("*" + SUFFIX))
    if not paths:
        raise SystemExit(f"{arguments.set_dir} holds no *{SUFFIX}")
    floor = {} if arguments.defaults else {"min_context_messages": 0}
    settings = roomlore.Settings(enable_async_data_collection=False, fallback_on_error=False, **floor)
    for path in paths:
        started, count = time.perf_counter(), 0
        target = arguments.out_dir / path.name.replace(SUFFIX, ".predictions.jsonl")
        async with roomlore.open("sqlite://", settings=settings) as lore:
            with open_import(path, "jsonl") as export, target.open("w", encoding="utf-8") as out:
                for item in export:
                    if isinstance(item, Bad):
                        raise SystemExit(f"{path.name}, line {item.number}: {item.reason}")
                    prediction = await predict(lore, item.message, arguments.strategy, arguments.k)
                    out.write(json.dumps(prediction, ensure_ascii=False) + "\n")
                    count += 1
        print(f"{path.name}: {count} messages in {time.perf_counter() - started:.1f} s", flush=True)


async def predict(lore: roomlore.Lore, message: roomlore.Message, strategy: str, k: int) -> dict[str, object]:
    await lore.messages.add(message)
    context = await lore.context.build(message.room_id, message.id, strategy=strategy, max_messages=k)
    return {
        "id": message.id,
        "selected": [candidate.message.id for candidate in context.messages],
        "scores": [candidate.score for candidate in context.messages],
        "parent": context.parent,
    }
