"""The report of `crash`: where kills fell, what was done, what was asked twice and why."""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.crash_checks import Known, is_broken_off, replies_of, work_place
from bench.crash_items import ROOMS
from bench.crash_model import Request
from bench.crash_stored import Stored
from roomlore.core.memory.extraction import FALLBACK
from roomlore.services.extraction import EXTRACTION

_SHOWN = 20
_NUMBERS = re.compile(r"\d+")


@dataclass(slots=True)
class Life:
    """One process from start to end, in seconds of `time.monotonic`. `number`: from 0. `first`: where each room went
    on. `marks`: when it said what. `under_way`: rooms and numbers it had begun to hand in and was told nothing of.
    `begun`: by room, when it began to hand in each. `again`: how many acknowledged ones it handed in once more, and was
    told the same."""

    number: int
    began: float
    first: Mapping[str, int]
    marks: dict[str, float] = field(default_factory=dict)
    under_way: set[tuple[str, int]] = field(default_factory=set)
    begun: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    done: int = 0
    again: int = 0
    told_to_close: float | None = None
    ended: float = 0.0
    killed: bool = False


def report(lives: Sequence[Life], known: Known, stored: Stored) -> None:
    """Return what was done."""
    report_done(lives, known, stored)
    report_asked(lives, known, ("reply", "memory"))
    killed = [life for life in lives if life.killed]
    print(f"steps finished before a kill and kept after it, without asking again: {saved(killed, stored)}")


def report_lives(lives: Sequence[Life], where: Callable[[Life], Iterator[str]]) -> None:
    """Return how long lives were and where kills fell."""
    killed = [life for life in lives if life.killed]
    lasted = sorted(life.ended - life.began for life in killed) or [0.0]
    print(
        f"kills: {len(killed)}, of lives of {lasted[0]:.2f} to {lasted[-1]:.2f} s, median {median(lasted):.2f} s; "
        f"{len(lives) - len(killed) - 1} were told to close and were quicker; "
        f"the last one was at rest after {lives[-1].ended - lives[-1].began:.0f} s"
    )
    fell = Counter(place for life in killed for place in where(life))
    print("they fell while " + ", ".join(f"{place} {count}" for place, count in fell.most_common()))


def report_wrong(wrong: Sequence[str]) -> None:
    print(f"violations: {len(wrong)}", *wrong[:_SHOWN], sep="\n  ")


def phase(life: Life) -> str:
    """Return what the whole process was doing when it was killed."""
    if "begun" not in life.marks:
        return "starting"
    if "open" not in life.marks:
        return "opening the database"
    return "closing" if "closing" in life.marks else "working"


def where(life: Life, requests: Sequence[Request]) -> Iterator[str]:
    """Return what a life was doing when it was killed, which may be several things."""
    yield phase(life)
    kinds = {room.name: room.kind for room in ROOMS}
    under_way = {kinds[room] for room, _ in life.under_way}
    yield from ({"asked": "- replying", "plain": "- adding messages", "told": "- adding replies"}[k] for k in under_way)
    asked = {r.kind for r in requests if r.life == life.number and (r.answered_at or life.ended) >= life.ended}
    yield from (f"- a model was writing a {kind}" for kind in asked)


def report_done(lives: Sequence[Life], known: Known, stored: Stored) -> None:
    messages = [message for messages in stored.messages.values() for message in messages]
    replies = sum(len(each) for messages in stored.messages.values() for each in replies_of(messages).values())
    replied = sum(gave is not None for gave in known.acknowledged.values())
    print(
        f"handed in and acknowledged: {len(known.acknowledged):,}, {replied:,} of them for a reply; "
        f"{sum(life.again for life in lives):,} once more after that, with the same answer"
    )
    broken = sum(map(is_broken_off, messages))
    print(f"messages stored: {len(messages):,}, {replies:,} of them replies ({broken} broken off by a close)")
    memories = len(stored.memories)
    fallbacks = sum(evolution.model == FALLBACK for evolution in stored.evolutions)
    print(f"extractions: {len(stored.evolutions):,}, {memories:,} of them with a memory, {fallbacks} without a model")


def report_asked(lives: Sequence[Life], known: Known, kinds: Sequence[str]) -> None:
    """Return how often models were asked, and asked again."""
    requests_by_key: dict[tuple[str, str], list[Request]] = defaultdict(list)
    for request in known.requests:
        requests_by_key[request.key].append(request)
    for kind in kinds:
        repeats = [once for key, made in requests_by_key.items() if key[0] == kind for once in made[:-1]]
        count = sum(request.kind == kind for request in known.requests)
        lost = [late for late in (_lost_after(request, lives[request.life]) for request in repeats) if late is not None]
        ago = f", a median of {median(lost) * 1e3:.0f} ms before that, {max(lost) * 1e3:.0f} at most" if lost else ""
        article = "an" if kind == "evolution" else "a"
        print(
            f"requests for {article} {kind}: {count:,}; repeated after the end of a life: {len(repeats)}, "
            f"{len(lost)} of them answered in full{ago}"
        )


def saved(killed: Sequence[Life], stored: Stored) -> int:
    """Return how often a kill fell between a model's written answer and what was kept of it."""
    offset = time.time() - time.monotonic()
    kept = {(e.scope.removeprefix("agent:"), e.room_id, e.last_arrival): e.finished_at for e in stored.evolutions}
    ends = {work.work_id: kept.get(work_place(work)) for work in stored.works if work.name == EXTRACTION}
    spans = [(step.at, end.timestamp()) for step in stored.steps if (end := ends.get(step.work_id))]
    return sum(any(begun < life.ended + offset < ended for life in killed) for begun, ended in spans)


def report_log(log: Path) -> None:
    """Return what the processes wrote to stderr, similar lines once."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    alike = Counter(_NUMBERS.sub("N", line)[:160] for line in lines)
    if alike:
        print("said on stderr:", *(f"{count} x {line}" for line, count in alike.most_common(_SHOWN)), sep="\n  ")


def _lost_after(request: Request, life: Life) -> float | None:
    """Seconds from the end of an answer to the end of the life that lost it; None where that life did not see its end.
    What is sent to a process that is gone counts as sent for a moment."""
    return life.ended - request.answered_at if request.answered_at and request.answered_at < life.ended else None
