"""The report of `crash --what evolution`."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence

from bench.crash_checks import Known
from bench.crash_model import Request
from bench.crash_report import Life, phase, report_asked
from bench.evolution_items import ROOMS, act
from bench.evolution_stored import Stored
from roomlore.services.evolution import EVOLUTION

_DOING = {"": "adding messages", "begin": "handing in an evolution", "evolve": "evolving", "edit": "changing by hand"}
_BY_NAME = {room.name: room for room in ROOMS}


def where(life: Life, requests: Sequence[Request]) -> Iterator[str]:
    """Return what a life was doing when it was killed, which may be several things."""
    yield phase(life)
    doing = {_DOING[act(_BY_NAME[room], number)] for room, number in life.under_way}
    yield from (f"- {line}" for line in doing)
    if any(request.life == life.number and (request.answered_at or life.ended) >= life.ended for request in requests):
        yield "- a model was thinking"


def report(lives: Sequence[Life], known: Known, stored: Stored) -> None:
    """Return what was done."""
    acts = Counter(act(_BY_NAME[room], number) for room, number in known.acknowledged)
    print(
        f"acknowledged: {len(known.acknowledged):,}: messages {acts['']:,} times, {acts['begin']:,} evolutions handed "
        f"in, {acts['evolve']:,} done at once, {acts['edit']:,} changes by hand"
    )
    records = [record for each in stored.records.values() for record in each]
    status = Counter(str(record.status) for record in records)
    did = Counter(change.action.value for log in stored.logs.values() for change in log)
    durable = sum(work.name == EVOLUTION for work in stored.works)
    print(f"messages stored: {sum(map(len, stored.messages.values())):,}, {_read(stored):,} of them read")
    print(f"evolutions: {len(records):,} ({_listed(status)}), pieces of durable work: {durable:,}")
    print(f"changes: {sum(did.values()):,} ({_listed(did)})")
    report_asked(lives, known, ("evolution",))
    print(f"answers written before a kill and kept after it, without asking again: {saved(lives, stored)}")


def saved(lives: Sequence[Life], stored: Stored) -> int:
    """Return how often a kill fell between a model's written answer and what was kept of it."""
    offset = time.time() - time.monotonic()
    kept = {record.evolution_id: record.finished_at.timestamp() for each in stored.records.values() for record in each}
    ends = {work.work_id: kept.get(str(work.arguments.get("evolution_id"))) for work in stored.works}
    spans = [(step.at, end) for step in stored.steps if (end := ends.get(step.work_id))]
    kills = [life.ended + offset for life in lives if life.killed]
    return sum(any(begun < kill < ended for kill in kills) for begun, ended in spans)


def _read(stored: Stored) -> int:
    return sum(record.messages for each in stored.records.values() for record in each if record.status != "failed")


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
