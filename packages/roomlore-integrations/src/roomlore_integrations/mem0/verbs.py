"""The verbs of mem0's clients: adding, filters, the history of a memory, and the verbs themselves."""

import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from roomlore import (
    Change,
    Forbidden,
    InvalidInput,
    Lore,
    Memory,
    MemoryHit,
    MemoryKind,
    MemoryStatus,
    Message,
    NewMemory,
    NotFound,
    Remembered,
    Source,
)
from roomlore.core.memory.memory import Action
from roomlore.core.memory.writing import KEEP, MAX_SOURCES, Keep, checked
from roomlore_integrations.mem0.messages import (
    KEYS,
    ROOMS,
    GivenMessage,
    Kept,
    Note,
    Owners,
    as_message,
    as_note_alone,
    beside,
    expired,
    given_messages,
    last_day,
    note_of,
    own,
    read,
    stored_note,
)

log = logging.getLogger("roomlore.mem0")

Item = dict[str, Any]


async def a_model_reads(lore: Lore) -> bool:
    """Return True if the model of evolutions can be called: a provider has a key, or needs none."""
    models = await lore.models.list_available_models(internal=True)
    return any(model.usable for model in models if model.model_id == lore.settings.evolution.evolve_model)


async def keep_messages(lore: Lore, heard: Sequence[GivenMessage], given: Note, owners: Owners) -> list[Item]:
    """Add each message as a fact, unchanged. Raises `InvalidInput` before anything is stored."""
    messages = [
        _message(lore, message, replace(given, role=message.role, actor_id=message.name), owners, kept=True)
        for message in heard
    ]
    facts = [checked(_fact(message, owners)) for message in messages]
    if not facts:
        return []
    await _store(lore, messages)
    done = await lore.memories.add_all(facts)
    return [await _settled(lore, outcome, message, owners) for outcome, message in zip(done, messages, strict=True)]


async def infer_memories(
    lore: Lore, heard: Sequence[GivenMessage], given: Note, owners: Owners, viewer: str | None
) -> list[Item]:
    """Store the messages, let a model read all new messages of the user, and return what changed, of what the viewer
    may see. Raises `ModelUnavailable`; then the next call reads what was stored."""
    if not any(message.role == "user" and message.text.strip() for message in heard):
        return []
    await _store(lore, [_message(lore, message, given, owners, kept=False) for message in heard])
    changes: list[Change] = []
    while True:
        done = await lore.memories.evolve(f"user:{owners.user_id}", mode="llm")
        changes += done.changes
        if done.failed or not done.remaining or not done.messages:
            reported = [change for change in changes if change.action is not Action.STRENGTH]
            return [
                _event(change, replaced=await _is_shown(lore, change.closes[:1], viewer))
                for change in reported
                if await _is_shown(lore, [change.memory.memory_id], viewer)
            ]


async def _is_shown(lore: Lore, memory_ids: Sequence[str], viewer: str | None) -> bool:
    for memory_id in memory_ids:
        try:
            await lore.memories.get(memory_id, viewer=viewer)
        except NotFound:
            return False
    return True


async def _store(lore: Lore, messages: Sequence[Message]) -> None:
    """Add messages of one set of owners. Their room is a talk between the user and agents, so that what is said there
    may be used in all rooms of the user."""
    await lore.messages.add(messages)
    await lore.rooms.set_kind(messages[0].room_id, "direct")


async def store_note(lore: Lore, kept: Kept, owners: Owners, wanted: Note) -> Memory:
    """Store this note of a memory for these owners, and return the memory."""
    memory = kept.memory
    if owners in kept.owners and owners not in kept.beside:
        message = as_note_alone(wanted, owners, message_id=uuid.uuid4().hex, at=lore.now())
        await lore.messages.add(message)
        return await lore.memories.update(memory.memory_id, sources=_with_source(memory, message), viewer=None)
    at = beside(memory, owners)
    message = as_note_alone(wanted, owners, message_id=at.message_id, at=lore.now())
    report = await lore.messages.add(message, on_conflict="report")
    if not report.added:
        await lore.messages.edit(at.room_id, at.message_id, metadata=message.metadata)
    return memory


async def drop(lore: Lore, kept: Kept, gone: Sequence[Owners]) -> None:
    """Delete a memory, or keep it for the other owners."""
    memory, left = kept.memory, [owners for owners in kept.owners if owners not in gone]
    if not left:
        await lore.memories.delete(memory.memory_id)
        return
    rooms = {owners.room_id for owners in gone}
    sources = [source for source in memory.sources if source.room_id not in rooms]
    if kept.owners[-1] in gone:
        sources += [beside(memory, left[-1])] if left[-1] in kept.beside else []
    if sources != list(memory.sources):
        await lore.memories.update(memory.memory_id, sources=sources, viewer=None)
    for at in (beside(memory, owners) for owners in gone if owners in kept.beside):
        await lore.messages.edit(at.room_id, at.message_id, metadata=stored_note(None))


def _with_source(memory: Memory, message: Message) -> list[Source]:
    """Return the memory's evidence with this message last; of the message's room the first message is kept too."""
    here = [source for source in memory.sources if source.room_id == message.room_id]
    others = [source for source in memory.sources if source.room_id != message.room_id]
    return [*others, *here[:1], Source(message.room_id, message.id)][-MAX_SOURCES:]


def _message(lore: Lore, message: GivenMessage, given: Note, owners: Owners, *, kept: bool) -> Message:
    return as_message(message, given, owners, message_id=uuid.uuid4().hex, at=lore.now(), kept=kept)


def _fact(message: Message, owners: Owners) -> NewMemory:
    return NewMemory(scope=owners.scope, statement=message.text, sources=[Source(message.room_id, message.id)])


async def _settled(lore: Lore, done: Remembered, message: Message, owners: Owners) -> Item:
    """Return the result. A known memory keeps its note and takes over new fields; an expired one is shown again."""
    event, memory, new = "ADD", done.memory, note_of(message) or Note()
    if done.outcome != "added":
        event = "NONE"
        known = (await read(lore, [memory], [owners]))[0]
        whose = dict.fromkeys([owners, known.owners[-1]]) if _over(lore, known.note) else [owners]
        for its in whose:
            before = known.note_for(its) if its in known.owners else None
            wanted = _joined(lore, before, new)
            if wanted != before:
                memory, event = await store_note(lore, known, its, wanted), "UPDATE"
                known = replace(known, memory=memory)
    return {
        "id": memory.lineage_id,
        "memory": memory.statement,
        "event": event,
        "actor_id": new.actor_id,
        "role": new.role,
    }


def _over(lore: Lore, kept: Note | None) -> bool:
    return expired(kept, lore.now().date())


def _joined(lore: Lore, before: Note | None, new: Note) -> Note:
    if before is None:
        return new
    until = new.until if _over(lore, before) else before.until
    return replace(before, metadata={**new.metadata, **before.metadata}, until=until)


def _event(change: Change, *, replaced: bool) -> Item:
    """Return what a change did. `replaced`: what it replaced may be told."""
    item = {"id": change.memory.lineage_id, "memory": change.memory.statement}
    if change.memory.status is not MemoryStatus.ACTIVE:
        return {**item, "event": "DELETE"}
    if change.old_statement is None or not replaced:
        return {**item, "event": "ADD"}
    return {**item, "event": "UPDATE", "previous_memory": change.old_statement}


Fields = Mapping[str, Any]
_MISSING = object()


def check_filters(filters: Any) -> None:
    """Raise `InvalidInput` for filters that `matches` does not support."""
    if not isinstance(filters, Mapping):
        raise InvalidInput("filters_invalid", value=f"{filters!r:.60}")
    for name, wanted in filters.items():
        if name in JOINTS:
            _check_joint(name, wanted)
        elif isinstance(wanted, Mapping):
            _check_operators(name, wanted)


def matches(fields: Fields, filters: Fields) -> bool:
    """Return True if every condition holds. `filters` must have passed `check_filters`."""
    return all(_holds(fields, name, wanted) for name, wanted in filters.items())


def _check_joint(name: str, wanted: Any) -> None:
    if not isinstance(wanted, list) or not wanted:
        raise InvalidInput("filter_list_needed", name=name, value=f"{wanted!r:.60}")
    for part in wanted:
        check_filters(part)


def _check_operators(name: str, wanted: Fields) -> None:
    for operator, value in wanted.items():
        if operator not in OPERATORS:
            raise InvalidInput(
                "filter_operator_unknown",
                name=f"{name!r:.60}",
                operator=f"{operator!r:.60}",
                known=", ".join(OPERATORS),
            )
        if operator in ("in", "nin") and not isinstance(value, list | tuple):
            raise InvalidInput(
                "filter_value_not_list", name=f"{name!r:.60}", operator=repr(operator), value=f"{value!r:.60}"
            )


def _holds(fields: Fields, name: str, wanted: Any) -> bool:
    if name in JOINTS:
        return JOINTS[name](matches(fields, part) for part in wanted)
    value = fields.get(name, _MISSING)
    if isinstance(wanted, Mapping):
        return all(OPERATORS[operator](value, given) for operator, given in wanted.items())
    if isinstance(wanted, list | tuple):
        return _equal(value, wanted) or any(_equal(value, candidate) for candidate in wanted)
    return value is not _MISSING if wanted == "*" else _equal(value, wanted)


def _elements(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _same(value: Any, wanted: Any) -> bool:
    """Return True for equal values; 1 and True are two."""
    return bool(value == wanted) and isinstance(value, bool) is isinstance(wanted, bool)


def _equal(value: Any, wanted: Any) -> bool:
    return _same(value, wanted) or _in(_elements(value), wanted)


def _in(values: Sequence[Any], wanted: Any) -> bool:
    return any(_same(value, wanted) for value in values)


def _other(value: Any, unwanted: Sequence[Any]) -> bool:
    """Return True for a value, or a list with an element, that is none of these; False where there is none."""
    if value is _MISSING or _in(unwanted, value):
        return False
    return any(element is not None and not _in(unwanted, element) for element in _elements(value))


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a comparison that is False for values that cannot be compared."""

    def holds(value: Any, wanted: Any) -> bool:
        bound = _bound(wanted)
        held = _moment(value) if isinstance(bound, datetime) else value
        try:
            return not isinstance(held, bool) and bool(compare(held, bound))
        except TypeError:
            return False

    return holds


def _bound(wanted: Any) -> Any:
    """Return a bound as values are compared with it: a number, or a moment, if it is the text of one."""
    try:
        return float(wanted) if isinstance(wanted, str) else wanted
    except ValueError:
        return _moment(wanted) or wanted


def _moment(given: Any) -> datetime | None:
    """Return the moment that a text in ISO 8601 names, by UTC if it has no offset; None for anything else."""
    try:
        moment = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _contains(value: Any, wanted: Any) -> bool:
    return any(_same(element, wanted) or _within(wanted, element) for element in _elements(value))


def _contains_in_any_case(value: Any, wanted: Any) -> bool:
    return any(_within(str(wanted).casefold(), each.casefold()) for each in _elements(value) if isinstance(each, str))


def _within(part: Any, text: Any) -> bool:
    return isinstance(part, str) and isinstance(text, str) and part in text


JOINTS: Mapping[str, Callable[[Any], bool]] = {
    "AND": all,
    "OR": any,
    "NOT": lambda conditions: not any(conditions),
}
OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": _equal,
    "ne": lambda value, wanted: _other(value, [wanted]),
    "in": lambda value, wanted: any(_equal(value, candidate) for candidate in wanted),
    "nin": _other,
    "gt": _ordered(lambda value, wanted: value > wanted),
    "gte": _ordered(lambda value, wanted: value >= wanted),
    "lt": _ordered(lambda value, wanted: value < wanted),
    "lte": _ordered(lambda value, wanted: value <= wanted),
    "contains": _contains,
    "icontains": _contains_in_any_case,
}


_PAGE = 500


async def history_of(lore: Lore, memory: Memory, viewer: str | None = None) -> list[dict[str, Any]]:
    """Return a row for each change of the memory's text or note that the viewer may see, the first one first."""
    seen = await lore.memories.history(memory.memory_id, viewer=viewer)
    versions = {version.memory_id: version for version in seen}
    # A viewer is not told when a memory began that was only shared with it.
    began = await lore.memories.get(memory.memory_id, viewer=None)
    changes = [change for change in await _log(lore, began) if _concerns(change, versions)]
    if viewer is not None:
        changes = [change for change in changes if change.memory.memory_id in versions]
    kept = await read(lore, [change.memory for change in changes])
    return [
        _row(versions, change, its, gone=_is_gone(change, began), place=None if viewer is None else place)
        for place, (change, its) in enumerate(zip(changes, kept, strict=True), start=1)
    ]


async def _log(lore: Lore, memory: Memory) -> list[Change]:
    """Return the log of the scope since the memory was created."""
    changes: list[Change] = []
    after = 0
    while page := await lore.memories.changes(memory.scope, after=after, limit=_PAGE, since=memory.created_at):
        changes += page
        after = page[-1].number
    return changes


def _concerns(change: Change, versions: Mapping[str, Memory]) -> bool:
    touched = {change.memory.memory_id, *change.closes}
    return change.action is not Action.STRENGTH and not touched.isdisjoint(versions)


def _is_gone(change: Change, memory: Memory) -> bool:
    """Return True if the change ended the memory. One that was merged into another one is deleted."""
    return change.memory.status is not MemoryStatus.ACTIVE or change.memory.lineage_id != memory.lineage_id


def _row(
    versions: Mapping[str, Memory], change: Change, kept: Kept, *, gone: bool, place: int | None
) -> dict[str, Any]:
    """Return a row. `gone`: the change ended the memory. `place`: for a viewer, who is told neither
    how many changes the log has nor what other versions said."""
    made, note, first = change.memory, kept.note, next(iter(versions.values()))
    known = (versions[name].statement for name in change.closes if name in versions)
    closed = next(known, change.old_statement if place is None else None)
    return {
        "id": f"{change.scope}#{change.number}" if place is None else f"{first.lineage_id}#{place}",
        "memory_id": first.lineage_id,
        "old_memory": closed,
        "new_memory": None if gone else made.statement,
        "event": "DELETE" if gone else "ADD" if closed is None else "UPDATE",
        "created_at": first.created_at.isoformat(),
        "updated_at": change.at.isoformat(),
        "is_deleted": gone,
        "actor_id": note.actor_id if note else None,
        "role": note.role if note else None,
    }


Results = dict[str, list[Item]]

MAX_FOUND = 200
_MIN_PAGE = 50
_NEVER_TAKEN = {
    "timestamp": "leave it out; a memory is of the time at which it is added",
    "memory_type": "leave it out; every memory is a fact",
    "prompt": "leave it out; the prompt of facts is a file, see docs/how-to/prompts.md",
    "reference_date": "leave it out",
    "user_id": "pass it as filters={'user_id': ...}",
    "agent_id": "pass it as filters={'agent_id': ...}",
    "run_id": "pass it as filters={'run_id': ...}",
    "limit": "it is called top_k",
}


class Verbs:
    """The verbs of `Memory` and `AsyncMemory`. Raise `StorageUnavailable` if the database does not answer. `viewer`:
    who sees the answers; None for everything."""

    def __init__(self, lore: Lore, viewer: str | None = None) -> None:
        self._lore = lore
        self._viewer = viewer

    async def add(
        self,
        messages: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> Results:
        """Remember the messages (a text, a message, a list of messages): `{"results": [{"id", "memory", "event"},
        ...]}`.

        With `infer` a model reads the user's messages and changes the user's facts. Without a model or a `user_id`, and
        with `infer=False`, the messages are stored word for word. The event is 'ADD', 'UPDATE', 'DELETE', or 'NONE' for
        a known fact. Raises `InvalidInput` and `ModelUnavailable`.
        """
        _refuse("add", timestamp=timestamp, memory_type=memory_type, prompt=prompt)
        owners = Owners.of({"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, "add(..., user_id='anna')")
        given_turns, note = given_messages(messages), Note(own(metadata), last_day(expiration_date))
        if infer and owners.user_id:
            if await a_model_reads(self._lore):
                return {"results": await infer_memories(self._lore, given_turns, note, owners, self._viewer)}
            given_turns = [message for message in given_turns if message.role == "user"]
        return {"results": await keep_messages(self._lore, given_turns, note, owners)}

    async def get(self, memory_id: str) -> Item | None:
        """Return the memory, None if there is none or it was deleted."""
        try:
            kept = await self._in_force(memory_id)
        except NotFound:
            return None
        return {**kept.item(), "score": None}

    async def get_all(
        self,
        /,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int = 20,
        show_expired: bool = False,
        **more: Any,
    ) -> Results:
        """Return at most `top_k` memories that match the filters, the last changed first. Raises `InvalidInput`."""
        _refuse("get_all", **more)
        wanted, rest = _read_filters(filters, "get_all")
        _check_top_k(top_k)
        kept_memories: list[Kept] = []
        scopes, also = await self._whose(wanted)
        for scope in scopes if top_k else ():
            kept_memories += await self._first(scope, also, wanted, rest, top_k, show_expired)
        kept_memories.sort(key=lambda kept: kept.memory.updated_at, reverse=True)
        return {"results": [kept.item() for kept in kept_memories[:top_k]]}

    async def search(
        self,
        /,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = 0.1,
        rerank: bool = False,
        explain: bool = False,
        reference_date: Any = None,
        show_expired: bool = False,
        **more: Any,
    ) -> Results:
        """Return at most `top_k` memories that match filters and query, best first, each with its score in [0, 1].

        The 200 best of each scope are considered. `explain`: with the parts of the score. `rerank`: has no effect.
        Raises `InvalidInput`.
        """
        _refuse("search", reference_date=reference_date, **more)
        wanted, rest = _read_filters(filters, "search")
        _check_top_k(top_k)
        least = 0.1 if threshold is None else threshold
        hits: list[tuple[MemoryHit, Kept]] = []
        scopes, also = await self._whose(wanted)
        for scope in scopes:
            answer = await self._lore.memories.search(
                scope, query, limit=MAX_FOUND, threshold=least, viewer=self._viewer
            )
            if answer.degraded:
                log.warning("memories were searched by words alone", extra={"why": answer.degraded})
            facts = [hit for hit in answer.hits if hit.memory.kind is MemoryKind.FACT]
            all_kept = await read(self._lore, [hit.memory for hit in facts], also.get(scope, ()))
            for hit, kept in zip(facts, all_kept, strict=True):
                if seen := self._fitting(kept, wanted, rest, show_expired):
                    hits.append((hit, seen))
        hits.sort(key=lambda pair: pair[0].score, reverse=True)
        return {"results": [_hit_item(hit, kept, explain=explain) for hit, kept in hits[:top_k]]}

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = KEEP,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change a memory; metadata is merged. `data`: an older name of `text`. Raises `NotFound`, `Conflict` if
        another memory says the same, and `InvalidInput`."""
        statement = data if text is None else text
        if statement is None and metadata is None and isinstance(expiration_date, Keep):
            raise InvalidInput("mem0_change_missing")
        await self._lore.memories.check_changeable(memory_id, self._viewer)
        kept = await self._in_force(memory_id, everywhere=True)
        if statement is not None:
            changed = await self._lore.memories.update(kept.memory.memory_id, statement=statement, viewer=self._viewer)
            kept = replace(kept, memory=changed)
        if metadata is not None or not isinstance(expiration_date, Keep):
            for owners in (*kept.beside, kept.owners[-1]):
                note = _changed(kept, owners, own(metadata), expiration_date)
                kept = replace(kept, memory=await store_note(self._lore, kept, owners, note))
        return {"message": "The memory was changed."}

    async def delete(self, memory_id: str) -> dict[str, str]:
        """Deprecate a memory; its history stays. Raises `NotFound`."""
        await self._lore.memories.check_changeable(memory_id, self._viewer)
        kept = await self._in_force(memory_id)
        await self._lore.memories.delete(kept.memory.memory_id)
        return {"message": "The memory was deleted."}

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Delete every memory of these owners; memories that were added for others too stay theirs. Raises
        `InvalidInput` if none is given."""
        wanted = Owners.of(
            {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, "delete_all(user_id='anna'); or call reset()"
        )
        also = _by_scope(await self._owners_around(wanted))
        theirs = {scope for scope, owners in also.items() if any(owner.include(wanted) for owner in owners)}
        for scope in sorted({wanted.scope, *theirs}):
            for kept in [kept async for kept in self._of(scope, also.get(scope, ())) if await self._may_change(kept)]:
                if gone := [owners for owners in kept.owners if owners.include(wanted)]:
                    await drop(self._lore, kept, gone)
        return {"message": "The memories were deleted."}

    async def _may_change(self, kept: Kept) -> bool:
        try:
            await self._lore.memories.check_changeable(kept.memory.memory_id, self._viewer)
        except Forbidden:
            return False
        return True

    async def history(self, memory_id: str) -> list[Item]:
        """Return the changes of a memory, the first one first; an empty list for an unknown one."""
        try:
            memory = await self._lore.memories.get(memory_id, viewer=self._viewer)
        except NotFound:
            return []
        return await history_of(self._lore, memory, self._viewer)

    async def reset(self) -> None:
        """Delete every memory that was added through this client, of all owners."""
        for scope in sorted({owners.scope for owners in await self._all_owners()}):
            for kept in [kept async for kept in self._of(scope) if kept.note is not None]:
                await self._lore.memories.delete(kept.memory.memory_id)

    async def _in_force(self, memory_id: str, *, everywhere: bool = False) -> Kept:
        """Return the memory in force. `everywhere`: with the notes of each of its owners."""
        await self._lore.memories.check_shown(memory_id, self._viewer)
        head = await self._lore.memories.head(memory_id, viewer=self._viewer)
        if head.status is not MemoryStatus.ACTIVE:
            raise NotFound("memory_was_deleted", memory=f"{memory_id!r:.80}")
        first = Owners.of_scope(head.scope)
        also = await self._all_owners(first.rooms) if everywhere and first.named() else ()
        return (await read(self._lore, [head], also))[0]

    async def _whose(self, wanted: Owners) -> tuple[list[str], Mapping[str, Sequence[Owners]]]:
        """Return the scopes with memories of these owners, those of an agent's or a run's users included; and by scope
        the owners for whom its memories may have been added again. Memories of a user are found without them."""
        if wanted.named().keys() == {"user_id"}:
            return [wanted.scope], {}
        known = await self._owners_around(wanted)
        also = _by_scope([owners for owners in known if owners.include(wanted)])
        return sorted({wanted.scope, *also}), also

    async def _owners_around(self, wanted: Owners) -> list[Owners]:
        """Return every set of owners in the scopes that may hold memories of these: one if the user is known."""
        return await self._all_owners(wanted.rooms if wanted.user_id else ROOMS)

    async def _all_owners(self, beginning: str = ROOMS) -> list[Owners]:
        """Return every set of owners with memories, from the rooms whose ids have this prefix."""
        all_owners: list[Owners] = []
        after = beginning
        while True:
            page = await self._lore.rooms.page(after=after, limit=_PAGE, viewer=None)
            ours = [room.room_id for room in page if room.room_id.startswith(beginning)]
            all_owners += [owners for room_id in ours if (owners := Owners.of_room(room_id))]
            if len(ours) < _PAGE:
                return all_owners
            after = ours[-1]

    async def _first(
        self,
        scope: str,
        also: Mapping[str, Sequence[Owners]],
        wanted: Owners,
        rest: Mapping[str, Any],
        most: int,
        expired: bool,
    ) -> list[Kept]:
        kept_memories: list[Kept] = []
        a_page = min(max(most, _MIN_PAGE), _PAGE)
        async with aclosing(self._of(scope, also.get(scope, ()), a_page=a_page)) as all_kept:
            async for kept in all_kept:
                if seen := self._fitting(kept, wanted, rest, expired):
                    kept_memories.append(seen)
                if len(kept_memories) == most:
                    break
        return kept_memories

    async def _of(self, scope: str, also: Sequence[Owners] = (), *, a_page: int = _PAGE) -> AsyncGenerator[Kept, None]:
        """Yield every fact of the scope, the last changed first, read in pages of `a_page`. `also`: as for `read`."""
        offset = 0
        while page := await self._lore.memories.page(
            scope, kinds=[MemoryKind.FACT], limit=a_page, offset=offset, viewer=self._viewer
        ):
            for kept in await read(self._lore, page, also):
                yield kept
            offset += len(page)

    def _fitting(self, kept: Kept, wanted: Owners, rest: Mapping[str, Any], expired: bool) -> Kept | None:
        """Return the memory as these owners see it, None if it does not match."""
        seen = kept.seen_by(wanted)
        if seen is None or not (expired or seen.is_shown(self._lore.now().date())):
            return None
        return seen if not rest or matches(seen.fields(), rest) else None


def _refuse(verb: str, **given: Any) -> None:
    """Raise `InvalidInput` for unsupported arguments."""
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(
                "mem0_argument_not_taken", verb=verb, name=name, why=_NEVER_TAKEN.get(name, "leave it out")
            )


def _read_filters(filters: Any, verb: str) -> tuple[Owners, dict[str, Any]]:
    """Return the owners, and the other conditions."""
    given = {} if filters is None else filters
    check_filters(given)
    rest = {name: wanted for name, wanted in given.items() if name not in KEYS}
    return Owners.of(given, f"{verb}(filters={{'user_id': 'anna'}})"), rest


def _hit_item(hit: MemoryHit, kept: Kept, *, explain: bool) -> Item:
    item = {**kept.item(), "score": hit.score}
    return {**item, "score_details": dict(hit.signals)} if explain else item


def _check_top_k(top_k: Any) -> None:
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 0:
        raise InvalidInput("top_k_invalid", value=f"{top_k!r:.60}")


def _by_scope(all_owners: Sequence[Owners]) -> dict[str, list[Owners]]:
    owners_by_scope: dict[str, list[Owners]] = {}
    for owners in all_owners:
        owners_by_scope.setdefault(owners.scope, []).append(owners)
    return owners_by_scope


def _changed(kept: Kept, owners: Owners, metadata: Mapping[str, Any], until: Any) -> Note:
    before = kept.note_for(owners) or Note(kept.metadata())
    note = replace(before, metadata={**before.metadata, **metadata})
    return note if isinstance(until, Keep) else replace(note, until=last_day(until))
