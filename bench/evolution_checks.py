"""Check what is stored after `crash --what evolution` against what was acknowledged, what a model was asked, and
itself. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from bench.crash_checks import Known
from bench.crash_items import request_of
from bench.evolution_again import Told, differences, heard
from bench.evolution_items import ALONE, ROOMS, Room, act, messages, report_of
from bench.evolution_model import EvolutionRequest
from bench.evolution_stored import PLACES, Place, Stored
from bench.evolution_victim import settings
from roomlore import StoredMessage
from roomlore.core.memory.log import active, replay
from roomlore.core.memory.memory import Change, Evolution
from roomlore.ports.durable import WorkState
from roomlore.services.evolution import EVOLUTION
from roomlore.services.evolution.piece import result_of
from roomlore.services.evolution.reading import MOST_MEMORIES
from roomlore.wiring.work import evolution_options

_OPTIONS = evolution_options(settings("http://nobody/v1"))


def violations(known: Known, stored: Stored) -> list[str]:
    """A line for everything that must not be."""
    evolved = {evolution.record.evolution_id: evolution for evolution in evolutions(known, stored)}
    return [
        *known.wrong,
        *stored.troubles,
        *(line for room in ROOMS for line in _messages(room, known, stored.messages[room.name])),
        *(line for scope, log in stored.logs.items() for line in _log(scope, log, stored.records[scope])),
        *(line for place in PLACES for line in _read(place, stored)),
        *(line for evolved_one in evolved.values() for line in _done(evolved_one)),
        *_acknowledged(known, stored, evolved),
        *_works(stored, evolved),
        *_paid(known, stored, evolved),
    ]


def evolutions(known: Known, stored: Stored) -> list[Told]:
    """Every record with its changes and what came before them."""
    shown = {request.number: request.shown for request in requests(known)}
    return [
        Told(
            record=record,
            before=[change for change in log if _is_before(change, record, own)],
            own=own,
            messages=stored.messages.get(record.room_id, ()),
            shown=shown[request_of(record.raw_answer)],
        )
        for scope, log in stored.logs.items()
        for record in stored.records[scope]
        if request_of(record.raw_answer) in shown
        for own in [[change for change in log if change.evolution_id == record.evolution_id]]
    ]


def requests(known: Known) -> list[EvolutionRequest]:
    """Those that a model was asked with, in their order."""
    return [request for request in known.requests if isinstance(request, EvolutionRequest)]


def _is_before(change: Change, record: Evolution, own: Sequence[Change]) -> bool:
    return change.number < own[0].number if own else change.at <= record.finished_at


def _messages(room: Room, known: Known, messages_stored: Sequence[StoredMessage]) -> Iterator[str]:
    there = Counter(message.id for message in messages_stored)
    yield from (f"{name} is stored {count} times" for name, count in there.items() if count > 1)
    if sorted(message.arrival for message in messages_stored) != list(range(1, len(messages_stored) + 1)):
        yield f"{room.name}: arrivals are not 1 to {len(messages_stored)}"
    texts = {message.id: message.text for message in messages_stored}
    for number in range(known.handed_in[room.name]):
        for message in [] if act(room, number) else messages(room, number):
            if texts.pop(message.id, None) != message.text:
                yield f"{message.id} was handed in and is not stored as it was"
    yield from (f"{name} was never handed in" for name in texts)


def _log(scope: str, log: Sequence[Change], records: Sequence[Evolution]) -> Iterator[str]:
    """One evolution at a time, each with its record."""
    spans = [name for name, _ in groupby(change.evolution_id for change in log) if name]
    yield from (f"{scope}: the changes of {name} lie apart" for name, count in Counter(spans).items() if count > 1)
    known = {record.evolution_id: record for record in records}
    yield from (f"{scope}: changes come from {name}, which has no record" for name in set(spans) - known.keys())
    for name, record in known.items():
        if (record.status == "applied") != (name in spans):
            yield f"{scope}: {name} is {record.status}, and {spans.count(name)} changes are its own"


def _read(place: Place, stored: Stored) -> Iterator[str]:
    """No message was read twice or passed over, and the mark is where the last one ended."""
    scope, room = place
    read = sorted(
        (record for record in stored.records[scope] if record.room_id == room), key=lambda record: record.last_arrival
    )
    arrivals = [message.arrival for message in heard(scope, stored.messages[room])]
    covered = [at for record in read for at in arrivals if record.first_arrival <= at <= record.last_arrival]
    if covered != arrivals[: len(covered)]:
        yield f"{scope}: its evolutions read a message of {room} twice, or passed one over"
    yield from (f"{scope}: two evolutions end at {a.last_arrival}" for a, b in pairwise(read) if _same_end(a, b))
    last = read[-1].last_arrival if read else 0
    if stored.marks.get(place, 0) != last:
        yield f"{scope}: its mark in {room} is at {stored.marks.get(place, 0)}, and its last evolution ended at {last}"


def _same_end(evolution: Evolution, other: Evolution) -> bool:
    return evolution.last_arrival == other.last_arrival


def _done(evolution: Told) -> Iterator[str]:
    """Check that it did what its answer asks for."""
    record = evolution.record
    where = f"{record.evolution_id} of {record.scope}"
    if len(evolution.covered) != record.messages:
        yield f"{where} says that it read {record.messages} messages, and there are {len(evolution.covered)}"
    in_force = [memory.statement for memory in active(replay(evolution.before))]
    if record.scope in ALONE and len(in_force) <= MOST_MEMORIES and list(evolution.shown.memories.values()) != in_force:
        yield f"{where}: its model was shown other memories than there were"
    yield from (f"{where}: {line}" for line in differences(evolution, _OPTIONS.rules_for(evolution.kind)))


def _acknowledged(known: Known, stored: Stored, evolved: Mapping[str, Told]) -> Iterator[str]:
    """Check that what somebody was told is done, or will be, exists."""
    rooms = {room.name: room for room in ROOMS}
    handed_in = {str(work.arguments["evolution_id"]) for work in stored.works if work.name == EVOLUTION}
    made = {change.memory.memory_id: change.memory.statement for log in stored.logs.values() for change in log}
    for (name, number), gave in known.acknowledged.items():
        does = act(rooms[name], number)
        if not does or not gave or not gave[0]:
            continue
        if does == "begin" and gave[1] not in handed_in:
            yield f"{name}/{number}: the evolution {gave[1]} was handed in and is no work"
        if does == "evolve" and _result_text(evolved.get(gave[0])) != gave[1]:
            yield f"{name}/{number}: the evolution {gave[0]} is not stored as somebody was told"
        if does == "edit" and made.get(gave[0]) != gave[1]:
            yield f"{name}/{number}: what was changed by hand is lost"


def _result_text(evolution: Told | None) -> str:
    return report_of(result_of(evolution.record, evolution.own)) if evolution else ""


def _works(stored: Stored, evolved: Mapping[str, Told]) -> Iterator[str]:
    """Work is done; the model's answer that was last written beside it is the one that was kept."""
    steps: dict[str, list[int]] = defaultdict(list)
    for step in stored.steps:
        steps[step.work_id].append(step.request)
    for work in stored.works:
        if work.name == EVOLUTION:
            yield from _work(work, evolved.get(str(work.arguments["evolution_id"])), steps[work.work_id])


def _work(work: WorkState, evolution: Told | None, steps: Sequence[int]) -> Iterator[str]:
    """If others evolve the scope too, an answer may be overtaken, and its messages read by somebody else. An answer
    is written once more with what became of its refused lines."""
    steps = [number for number, _ in groupby(steps)]
    scope = work.arguments["scope"]
    if work.status != "done":
        yield f"work {work.work_id} is {work.status}: {work.error}"
    kept = [request_of(evolution.record.raw_answer)] if evolution else []
    overtaken = scope not in ALONE and not kept
    if (kept != steps[-1:] and not overtaken) or (len(steps) > 1 and scope in ALONE):
        yield f"work {work.work_id} of {scope}: the answers {list(steps)} were written, and {kept} is kept"


def _paid(known: Known, stored: Stored, evolved: Mapping[str, Told]) -> Iterator[str]:
    """Of what only durable work evolves: a model is asked once more only by another life, and not once its answer is
    written."""
    requests_by_key: dict[tuple[str, str], list[EvolutionRequest]] = defaultdict(list)
    for request in sorted(requests(known), key=lambda one: (one.life, one.number)):
        requests_by_key[request.key].append(request)
        if not request.shown.labels:
            yield f"request {request.number} shows no messages"
    kept = {request_of(evolved_one.record.raw_answer) for evolved_one in evolved.values()}
    for again in requests_by_key.values():
        if again[0].shown.scope in ALONE:
            yield from _asked_again(again, kept)
    records = [record for each in stored.records.values() for record in each]
    yield from (
        f"{record.evolution_id}: no model was asked" for record in records if record.evolution_id not in evolved
    )
    twice = Counter(request_of(record.raw_answer) for record in records)
    yield from (f"request {number} is kept {count} times" for number, count in twice.items() if count > 1)


def _asked_again(again: Sequence[EvolutionRequest], kept: set[int]) -> Iterator[str]:
    for before, after in pairwise(again):
        if before.life == after.life:
            yield f"requests {before.number} and {after.number} show the same and were made in one life"
        if before.number in kept:
            yield f"request {before.number} is kept, and the model was asked once more, {after.number}"
