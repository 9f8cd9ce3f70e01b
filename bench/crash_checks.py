"""Check what is stored after `crash` against what was acknowledged, what models were asked, and itself. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from bench.crash_items import ROOMS, Room, item, last_answered, mark_of, request_of
from bench.crash_model import Request
from bench.crash_stored import Stored
from roomlore import Role, Settings, StoredMessage
from roomlore.core.memory.extraction import FALLBACK
from roomlore.core.memory.memory import Evolution, Memory
from roomlore.ports.durable import WorkState
from roomlore.services.extraction import EXTRACTION

EXTRACT_EVERY = Settings().evolution.extract_every
Key = tuple[str, str]
Place = tuple[str, str, int]
"""Agent, room and the arrival of the reply that an extraction ends with."""
_BROKEN_OFF = "broken_off"
_REPLY = "roomlore_reply"


@dataclass(slots=True)
class Known:
    """The facts known outside of the process. `handed_in`: by room, the first number that never was. `acknowledged`:
    by room and number, the reply's id and text where one was asked for. `wrong`: what was seen to be wrong while
    processes lived."""

    handed_in: dict[str, int]
    acknowledged: dict[tuple[str, int], tuple[str, str] | None] = field(default_factory=dict)
    requests: Sequence[Request] = ()
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Piece:
    """An extraction that the messages call for. `mark`: of the reply it ends with."""

    agent: str
    room: str
    last: int
    mark: str

    @property
    def place(self) -> Place:
        return self.agent, self.room, self.last


def violations(known: Known, everything: Stored) -> list[str]:
    """A line for everything that must not be."""
    stored, folds = _apart(everything)
    return [
        *known.wrong,
        *stored.troubles,
        *(line for room in ROOMS for line in _messages(room, known, stored.messages[room.name])),
        *_sessions(stored),
        *_extractions(stored),
        *_works(stored),
        *_paid(known, stored, folds),
    ]


def _apart(stored: Stored) -> tuple[Stored, list[Evolution]]:
    """Return what is stored without the merges of a room's oldest short memories, which some extractions make beside
    their own, and the records of these."""
    folds = [evolution for evolution in stored.evolutions if "folded" in evolution.facts]
    ids = {fold.evolution_id for fold in folds}
    return (
        replace(
            stored,
            evolutions=[evolution for evolution in stored.evolutions if evolution.evolution_id not in ids],
            memories=[memory for memory in stored.memories if memory.evolution_id not in ids],
        ),
        folds,
    )


def replies_of(messages: Sequence[StoredMessage]) -> dict[str, list[StoredMessage]]:
    """The replies of each agent in a room, as extraction counts them."""
    by_sender: dict[str, list[StoredMessage]] = defaultdict(list)
    for message in messages:
        if message.role is Role.ASSISTANT and not message.has_tool_calls:
            by_sender[message.sender_id].append(message)
    return by_sender


def pieces(messages: Mapping[str, Sequence[StoredMessage]]) -> list[Piece]:
    """Every extraction that there must be."""
    return [
        Piece(agent, room, reply.arrival, mark_of(reply.text))
        for room, messages_of_room in messages.items()
        for agent, replies in replies_of(messages_of_room).items()
        for reply in replies[EXTRACT_EVERY - 1 :: EXTRACT_EVERY]
    ]


def is_broken_off(message: StoredMessage) -> bool:
    """Return True if it is the part of a reply that existed when its process was ended politely."""
    kept = message.metadata.get(_REPLY)
    return isinstance(kept, Mapping) and _BROKEN_OFF in kept


def _messages(room: Room, known: Known, messages: Sequence[StoredMessage]) -> Iterator[str]:
    by_id = {message.id: message for message in messages}
    yield from (
        f"{name} is stored {count} times" for name, count in Counter(m.id for m in messages).items() if count > 1
    )
    if sorted(message.arrival for message in messages) != list(range(1, len(messages) + 1)):
        yield f"{room.name}: arrivals are not 1 to {len(messages)}"
    expected: set[str] = set()
    for number in range(known.handed_in[room.name]):
        given = item(room, number)
        for message in given.messages:
            expected.add(message.id)
            yield from _lost(message.id, message.text, by_id, acknowledged=(room.name, number) in known.acknowledged)
        replied = known.acknowledged.get((room.name, number))
        if replied:
            expected.add(replied[0])
            yield from _lost(*replied, by_id, acknowledged=True)
            yield from _answers(by_id.get(replied[0]), given.messages[0].id, given.agent)
    yield from (f"{m.id} was never handed in" for m in messages if m.id not in expected and not is_broken_off(m))


def _lost(message_id: str, text: str, by_id: Mapping[str, StoredMessage], *, acknowledged: bool) -> Iterator[str]:
    stored = by_id.get(message_id)
    if stored is None:
        yield f"{message_id} was {'acknowledged' if acknowledged else 'handed in to the end'} and is lost"
    elif stored.text != text:
        yield f"{message_id} says something else"


def _answers(reply: StoredMessage | None, message_id: str, agent: str) -> Iterator[str]:
    if reply and (reply.reply_to, reply.sender_id, last_answered(reply.text)[0]) != (message_id, agent, message_id):
        yield f"{reply.id} is no reply of {agent} to {message_id}"


def _sessions(stored: Stored) -> Iterator[str]:
    """A session that was never summarised shows everything, in order."""
    for room, shown in stored.windows.items():
        if list(shown) != [message.text for message in stored.messages[room]]:
            yield f"{room}: its session does not show what is stored"


def _extractions(stored: Stored) -> Iterator[str]:
    expected = {piece.place: piece for piece in pieces(stored.messages)}
    counts = Counter(map(_place, stored.evolutions))
    yield from (f"the extraction {_place_text(place)} is missing" for place in sorted(expected.keys() - counts.keys()))
    yield from (f"the extraction {_place_text(place)} was not due" for place in sorted(counts.keys() - expected.keys()))
    yield from (
        f"the extraction {_place_text(place)} is there {count} times" for place, count in counts.items() if count > 1
    )
    made: dict[str | None, list[Memory]] = defaultdict(list)
    for memory in stored.memories:
        made[memory.evolution_id].append(memory)
    strange = made.keys() - {evolution.evolution_id for evolution in stored.evolutions}
    yield from (f"memories come from {place}, which is no extraction" for place in strange)
    for evolution in stored.evolutions:
        yield from _range(evolution, stored.messages[evolution.room_id])
        yield from _memory(evolution, made[evolution.evolution_id], expected.get(_place(evolution)))
    yield from _overlaps(stored.evolutions)


def _range(evolution: Evolution, messages: Sequence[StoredMessage]) -> Iterator[str]:
    covered = [m for m in messages if evolution.first_arrival <= m.arrival <= evolution.last_arrival]
    agent = evolution.scope.removeprefix("agent:")
    replies = replies_of(covered).get(agent, [])
    if len(replies) != EXTRACT_EVERY or not EXTRACT_EVERY <= evolution.messages <= len(covered):
        yield f"{_where(evolution)} read {evolution.messages} messages with {len(replies)} replies"
    elif covered[-1] is not replies[-1]:
        yield f"{_where(evolution)} ends with no reply of {agent}"


def _memory(evolution: Evolution, made: Sequence[Memory], piece: Piece | None) -> Iterator[str]:
    wanted = 1 if evolution.status == "applied" else 0
    if len(made) != wanted:
        yield f"{_where(evolution)} made {len(made)} memories, not {wanted}"
    if evolution.model == FALLBACK:
        yield from (f"{_where(evolution)} is a fallback and not flagged" for memory in made if not memory.fallback)
        return
    for memory in made:
        if request_of(memory.statement) != request_of(evolution.raw_answer):
            yield f"{_where(evolution)} made a memory of another answer"
        if piece and piece.mark not in memory.statement:
            yield f"{_where(evolution)} made a memory of other messages"


def _overlaps(evolutions: Sequence[Evolution]) -> Iterator[str]:
    reached: dict[tuple[str, str], int] = {}
    for evolution in sorted(evolutions, key=lambda one: one.last_arrival):
        place = (evolution.scope, evolution.room_id)
        if evolution.first_arrival <= reached.get(place, 0):
            yield f"{_where(evolution)} begins before the one before it ends"
        reached[place] = evolution.last_arrival


def _works(stored: Stored) -> Iterator[str]:
    yield from (f"work {work.work_id} is {work.status}: {work.error}" for work in stored.works if work.status != "done")
    wanted = set(map(_place, stored.evolutions))
    there = Counter(work_place(work) for work in stored.works if work.name == EXTRACTION)
    yield from (
        f"no work is written for the extraction {_place_text(place)}" for place in sorted(wanted - there.keys())
    )
    yield from (
        f"work for the extraction {_place_text(place)} came to nothing" for place in sorted(there.keys() - wanted)
    )
    yield from (
        f"work for the extraction {_place_text(place)} is there {n} times" for place, n in there.items() if n > 1
    )


def _paid(known: Known, stored: Stored, folds: Sequence[Evolution]) -> Iterator[str]:
    requests_by_key: dict[Key, list[Request]] = defaultdict(list)
    for request in sorted(known.requests, key=lambda one: (one.life, one.number)):
        requests_by_key[request.key].append(request)
    keys = {request.number: request.key for request in known.requests}
    merged = [request_of(fold.raw_answer) for fold in folds]
    used = {
        **_replies_kept(stored),
        **_memories_kept(stored),
        **{keys.get(request_number, ("fold", "")): request_number for request_number in merged},
    }
    yield from (
        f"the merge of request {request_number} is there {n} times"
        for request_number, n in Counter(merged).items()
        if n > 1
    )
    for key, requests in requests_by_key.items():
        yield from _explained(key, requests)
        if key not in used:
            yield f"{_key(key)}: a model was asked, and nothing came of it"
        elif used[key] and used[key] != requests[-1].number:
            yield f"{_key(key)}: request {used[key]} is kept, and the model was asked once more, {requests[-1].number}"
    yield from (
        f"{_key(key)}: kept, and no model was asked" for key in used if used[key] and key not in requests_by_key
    )
    yield from _written(stored, merged)


def _explained(key: Key, requests: Sequence[Request]) -> Iterator[str]:
    """Only another life may ask again."""
    for before, after in pairwise(requests):
        if before.life == after.life:
            yield f"{_key(key)}: requests {before.number} and {after.number} were made in one life"


def _replies_kept(stored: Stored) -> dict[Key, int]:
    """By what was asked, the request whose answer is stored."""
    messages = [message for messages in stored.messages.values() for message in messages]
    whole = [message.text for message in messages if _REPLY in message.metadata and not is_broken_off(message)]
    return {("reply", label): request for label, request in map(last_answered, whole)}


def _memories_kept(stored: Stored) -> dict[Key, int]:
    """The same for extractions; 0 where no model gave an answer."""
    marks = {piece.place: piece.mark for piece in pieces(stored.messages)}
    return {
        ("memory", marks[_place(evolution)]): request_of(evolution.raw_answer)
        for evolution in stored.evolutions
        if _place(evolution) in marks
    }


def _written(stored: Stored, merged: Collection[int]) -> Iterator[str]:
    """Each extraction has one finished step, and it is the one whose answer was kept; and so has each merge."""
    places = {work.work_id: work_place(work) for work in stored.works if work.name == EXTRACTION}
    steps: dict[Place, list[int]] = defaultdict(list)
    for step in stored.steps:
        if step.work_id in places and step.request not in merged:
            steps[places[step.work_id]].append(step.request)
    finished = Counter(step.request for step in stored.steps)
    yield from (
        f"the merge of request {request_number} has {finished[request_number]} steps"
        for request_number in merged
        if finished[request_number] != 1
    )
    for evolution in stored.evolutions:
        kept, found = request_of(evolution.raw_answer), steps[_place(evolution)]
        if found != [kept]:
            yield f"{_where(evolution)}: request {kept} is kept, and the finished steps are of {found}"


def work_place(work: WorkState) -> Place:
    """The subject of a piece of extraction work."""
    given = work.arguments
    return str(given["agent_id"]), str(given["room_id"]), int(given["last"])


def _place(evolution: Evolution) -> Place:
    return evolution.scope.removeprefix("agent:"), evolution.room_id, evolution.last_arrival


def _place_text(place: Place) -> str:
    return f"of {place[0]} in {place[1]} up to {place[2]}"


def _key(key: Key) -> str:
    return f"{key[0]} {key[1] or '(of nothing known)'}"


def _where(evolution: Evolution) -> str:
    return f"extraction {evolution.scope} in {evolution.room_id}, {evolution.first_arrival} to {evolution.last_arrival}"
