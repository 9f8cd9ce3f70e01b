"""mem0's verbs over an open roomlore."""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from roomlore import InvalidInput, Lore, MemoryHit, MemoryKind, MemoryStatus, NotFound
from roomlore.core.memory.intake import KEEP, Keep
from roomlore.surfaces.mem0 import adding
from roomlore.surfaces.mem0.filters import check_filters, matches
from roomlore.surfaces.mem0.history import history_of
from roomlore.surfaces.mem0.kept import Kept, read
from roomlore.surfaces.mem0.owners import KEYS, ROOMS, Owners
from roomlore.surfaces.mem0.said import Note, last_day, own, said_in

Item = dict[str, Any]
Results = dict[str, list[Item]]

MOST_FOUND = 200
_PAGE = 500
_LEAST_PAGE = 50
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

log = logging.getLogger(__name__)


class Verbs:
    """What `Memory` and `AsyncMemory` do. Raises `StorageUnavailable` where the database does not answer."""

    def __init__(self, lore: Lore) -> None:
        self._lore = lore

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
        """Remembers what the messages (a text, a message, a list of messages) say: `{"results": [{"id", "memory",
        "event"}, ...]}`.

        With `infer` a model reads what the user said and changes what is known of the user. Without a model, or a
        `user_id`, and with `infer=False` what was said is kept word for word. The event is 'ADD', 'UPDATE', 'DELETE',
        or 'NONE' for what was known already. Raises `InvalidInput`, `ModelUnavailable`.
        """
        _refuse("add", timestamp=timestamp, memory_type=memory_type, prompt=prompt)
        owners = Owners.of({"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, "add(..., user_id='anna')")
        said, note = said_in(messages), Note(own(metadata), last_day(expiration_date))
        if infer and owners.user_id:
            if await adding.a_model_reads(self._lore):
                return {"results": await adding.infer(self._lore, said, note, owners)}
            said = [one for one in said if one.role == "user"]
        return {"results": await adding.keep(self._lore, said, note, owners)}

    async def get(self, memory_id: str) -> Item | None:
        """The memory, None where there is none or it was deleted."""
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
        """At most `top_k` memories that fit the filters, the last changed first. Raises `InvalidInput`."""
        _refuse("get_all", **more)
        wanted, rest = _read_filters(filters, "get_all")
        _check_top_k(top_k)
        found: list[Kept] = []
        scopes, also = await self._whose(wanted)
        for scope in scopes if top_k else ():
            found += await self._first(scope, also, wanted, rest, top_k, show_expired)
        found.sort(key=lambda kept: kept.memory.updated_at, reverse=True)
        return {"results": [kept.item() for kept in found[:top_k]]}

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
        """At most `top_k` memories that fit the filters and the query, best first, each with its score in [0, 1].

        Of each scope the 200 best are looked at. `explain`: with what the score is made of. `rerank`: changes nothing.
        Raises `InvalidInput`.
        """
        _refuse("search", reference_date=reference_date, **more)
        wanted, rest = _read_filters(filters, "search")
        _check_top_k(top_k)
        least = 0.1 if threshold is None else threshold
        found: list[tuple[MemoryHit, Kept]] = []
        scopes, also = await self._whose(wanted)
        for scope in scopes:
            answer = await self._lore.memories.search(scope, query, limit=MOST_FOUND, threshold=least)
            if answer.degraded:
                log.warning("memories were searched by words alone", extra={"why": answer.degraded})
            facts = [hit for hit in answer.hits if hit.memory.kind is MemoryKind.FACT]
            all_kept = await read(self._lore, [hit.memory for hit in facts], also.get(scope, ()))
            for hit, kept in zip(facts, all_kept, strict=True):
                if seen := self._fitting(kept, wanted, rest, show_expired):
                    found.append((hit, seen))
        found.sort(key=lambda one: one[0].score, reverse=True)
        return {"results": [_found(hit, kept, explain=explain) for hit, kept in found[:top_k]]}

    async def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = KEEP,
        data: str | None = None,
    ) -> dict[str, str]:
        """Changes a memory; metadata is added to what is there. `data`: `text` by an older name. Raises `NotFound`,
        `Conflict` where another memory says the same, `InvalidInput`."""
        statement = data if text is None else text
        if statement is None and metadata is None and isinstance(expiration_date, Keep):
            raise InvalidInput("There is nothing to change; give a text, metadata or an expiration_date.")
        kept = await self._in_force(memory_id, everywhere=True)
        if statement is not None:
            kept = replace(kept, memory=await self._lore.memories.update(kept.memory.memory_id, statement=statement))
        if metadata is not None or not isinstance(expiration_date, Keep):
            for owners in (*kept.beside, kept.owners[-1]):
                note = _changed(kept, owners, own(metadata), expiration_date)
                kept = replace(kept, memory=await adding.note(self._lore, kept, owners, note))
        return {"message": "The memory was changed."}

    async def delete(self, memory_id: str) -> dict[str, str]:
        """Takes a memory out of force; its history stays. Raises `NotFound`."""
        kept = await self._in_force(memory_id)
        await self._lore.memories.delete(kept.memory.memory_id)
        return {"message": "The memory was deleted."}

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Deletes every memory of these owners; what was added for others too stays theirs. Raises `InvalidInput` where
        none is given."""
        wanted = Owners.of(
            {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, "delete_all(user_id='anna'); or call reset()"
        )
        also = _by_scope(await self._owners_around(wanted))
        theirs = {scope for scope, owners in also.items() if any(one.include(wanted) for one in owners)}
        for scope in sorted({wanted.scope, *theirs}):
            for kept in [kept async for kept in self._of(scope, also.get(scope, ()))]:
                if gone := [owners for owners in kept.owners if owners.include(wanted)]:
                    await adding.drop(self._lore, kept, gone)
        return {"message": "The memories were deleted."}

    async def history(self, memory_id: str) -> list[Item]:
        """What became of a memory, the first change first; nothing for an unknown one."""
        try:
            memory = await self._lore.memories.get(memory_id)
        except NotFound:
            return []
        return await history_of(self._lore, memory)

    async def reset(self) -> None:
        """Deletes every memory that was added through this client, whoever's it is."""
        for scope in sorted({owners.scope for owners in await self._all_owners()}):
            for kept in [kept async for kept in self._of(scope) if kept.note is not None]:
                await self._lore.memories.delete(kept.memory.memory_id)

    async def _in_force(self, memory_id: str, *, everywhere: bool = False) -> Kept:
        """`everywhere`: with what is kept for each of its owners."""
        head = await self._lore.memories.head(memory_id)
        if head.status is not MemoryStatus.ACTIVE:
            raise NotFound(f"Memory {memory_id!r:.80} was deleted.")
        first = Owners.of_scope(head.scope)
        also = await self._all_owners(first.rooms) if everywhere and first.named() else ()
        return (await read(self._lore, [head], also))[0]

    async def _whose(self, wanted: Owners) -> tuple[list[str], Mapping[str, Sequence[Owners]]]:
        """Where memories of these owners may lie, those of an agent or a run with its users' too; and by scope the
        owners whose they may be besides. Whatever is a user's is found without."""
        if wanted.named().keys() == {"user_id"}:
            return [wanted.scope], {}
        known = await self._owners_around(wanted)
        also = _by_scope([owners for owners in known if owners.include(wanted)])
        return sorted({wanted.scope, *also}), also

    async def _owners_around(self, wanted: Owners) -> list[Owners]:
        """Return every set of owners in the scopes where memories of these may lie: one where the user is known."""
        return await self._all_owners(wanted.rooms if wanted.user_id else ROOMS)

    async def _all_owners(self, beginning: str = ROOMS) -> list[Owners]:
        """Return every set of owners that something was added for, of rooms whose ids begin like this."""
        found: list[Owners] = []
        after = beginning
        while True:
            page = await self._lore.rooms.page(after=after, limit=_PAGE)
            ours = [room.room_id for room in page if room.room_id.startswith(beginning)]
            found += [owners for room_id in ours if (owners := Owners.of_room(room_id))]
            if len(ours) < _PAGE:
                return found
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
        found: list[Kept] = []
        a_page = min(max(most, _LEAST_PAGE), _PAGE)
        async with aclosing(self._of(scope, also.get(scope, ()), a_page=a_page)) as all_kept:
            async for kept in all_kept:
                if seen := self._fitting(kept, wanted, rest, expired):
                    found.append(seen)
                if len(found) == most:
                    break
        return found

    async def _of(self, scope: str, also: Sequence[Owners] = (), *, a_page: int = _PAGE) -> AsyncGenerator[Kept, None]:
        """Every fact of the scope, the last changed first; so many are read at a time. `also`: as `read` takes it."""
        offset = 0
        while page := await self._lore.memories.page(scope, kinds=[MemoryKind.FACT], limit=a_page, offset=offset):
            for kept in await read(self._lore, page, also):
                yield kept
            offset += len(page)

    def _fitting(self, kept: Kept, wanted: Owners, rest: Mapping[str, Any], expired: bool) -> Kept | None:
        """Return it as these owners see it, None where it does not fit."""
        seen = kept.seen_by(wanted)
        if seen is None or not (expired or seen.is_shown(self._lore.now().date())):
            return None
        return seen if not rest or matches(seen.fields(), rest) else None


def _refuse(verb: str, **given: Any) -> None:
    """Raises `InvalidInput` for what this client does not do."""
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(f"{verb}() takes no {name} here: {_NEVER_TAKEN.get(name, 'leave it out')}.")


def _read_filters(filters: Any, verb: str) -> tuple[Owners, dict[str, Any]]:
    """Whose memories are asked for, and what else must hold."""
    given = {} if filters is None else filters
    check_filters(given)
    rest = {name: wanted for name, wanted in given.items() if name not in KEYS}
    return Owners.of(given, f"{verb}(filters={{'user_id': 'anna'}})"), rest


def _found(hit: MemoryHit, kept: Kept, *, explain: bool) -> Item:
    item = {**kept.item(), "score": hit.score}
    return {**item, "score_details": dict(hit.signals)} if explain else item


def _check_top_k(top_k: Any) -> None:
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 0:
        raise InvalidInput(f"top_k is {top_k!r:.60}; give a whole number, 0 or more.")


def _by_scope(all_owners: Sequence[Owners]) -> dict[str, list[Owners]]:
    found: dict[str, list[Owners]] = {}
    for owners in all_owners:
        found.setdefault(owners.scope, []).append(owners)
    return found


def _changed(kept: Kept, owners: Owners, metadata: Mapping[str, Any], until: Any) -> Note:
    before = kept.note_for(owners) or Note(kept.metadata())
    note = replace(before, metadata={**before.metadata, **metadata})
    return note if isinstance(until, Keep) else replace(note, until=last_day(until))
