"""From an answer to changes that are stored: planned without a lock, applied by compare and swap."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.asking import says_nothing
from roomlore.core.evolution.guards import said
from roomlore.core.evolution.handles import find, message_handles
from roomlore.core.evolution.likeness import likeness
from roomlore.core.evolution.models import Answer, Plan, Wish
from roomlore.core.evolution.plan import plan
from roomlore.core.evolution.result import EvolutionResult
from roomlore.core.evolution.strength import is_quiet
from roomlore.core.evolution.understanding import understood
from roomlore.core.memory.models import Memory, Source
from roomlore.core.memory.reading import own_words
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.evolution.asking import Offline
from roomlore.services.evolution.options import EvolutionOptions
from roomlore.services.evolution.piece import Answered, Piece, Read, Standing
from roomlore.services.evolution.reading import NO_ROOM, Reading, prints_of
from roomlore.services.evolution.results import record, told

_GROUNDS = 10
_EARLIER = 800


class Overtaken(Exception):
    """Others changed, while a model thought, what its answer speaks of. Says what, for who has tried often enough."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """An answer as it can be planned, with the messages under the handles that it uses. `prints`: the hashes of all
    that it rests on."""

    answer: Answer
    handles: dict[str, Source]
    prints: Mapping[str, str]
    failed: bool


class Applying:
    """Applies answers for all tenants. `repair`: makes JSON of what is none."""

    def __init__(
        self,
        *,
        storage: Storage,
        reading: Reading,
        clock: Clock,
        ids: Ids,
        options: EvolutionOptions,
        offline: Offline,
        repair: Callable[[str], str],
    ) -> None:
        self._storage = storage
        self._reading = reading
        self._clock = clock
        self._ids = ids
        self._options = options
        self._offline = offline
        self._repair = repair

    async def apply(self, piece: Piece, read: Read, answered: Answered) -> EvolutionResult:
        """Does what the answer asks for, all of it or none.

        Changes of other memories of the scope are planned around. Raises `Overtaken` where others changed those that
        the answer speaks of, or read the same messages.
        """
        asked = await self._asked(piece, read, answered)
        for _ in range(_GROUNDS):
            standing = await self._reading.standing(piece, read)
            planned = await asyncio.to_thread(self._plan, piece, read, answered, asked, standing)
            done = await self._write(piece, read, answered, asked, planned, standing)
            if done is not None:
                return done
        raise Overtaken(f"Others keep changing {piece.scope!r:.80}; evolve it again later.")

    async def _asked(self, piece: Piece, read: Read, answered: Answered) -> _Asked:
        if answered.mode == "offline":
            return await self._by_rules(piece, read)
        answer = await asyncio.to_thread(
            understood,
            answered.text,
            template=answered.template,
            offered=read.offered,
            messages=read.handles,
            shown=read.shown,
            quiet=partial(
                is_quiet,
                now=read.at,
                floor=self._options.strength_floor,
                half_life_days=self._options.rules.half_life_days,
            ),
            repair=self._repair,
        )
        usable = any(_can_be_done(wish, read.offered) for wish in answer.wishes)
        return _Asked(answer, dict(read.handles), read.prints, failed=not usable and not says_nothing(answered.text))

    async def _by_rules(self, piece: Piece, read: Read) -> _Asked:
        before = await self._reading.before(piece, read, limit=_EARLIER)
        every = [*before.messages, *read.messages]
        handles = message_handles(Source(read.room_id, message.id) for message in every)
        own = {
            handle: source
            for (handle, source), message in zip(handles.items(), every, strict=True)
            if own_words(message)
        }
        answer = await asyncio.to_thread(
            self._offline,
            read.messages,
            read.offered,
            handles=own,
            zone=self._options.zone,
            earlier=before.messages,
            people=read.people,
            deleted=before.deleted,
        )
        return _Asked(answer, own, {**before.prints, **read.prints}, failed=False)

    def _plan(self, piece: Piece, read: Read, answered: Answered, asked: _Asked, standing: Standing) -> Plan:
        if asked.failed:
            return Plan(kept=len(read.offered), rejected=asked.answer.rejected)
        return plan(
            asked.answer,
            offered=read.offered,
            messages=asked.handles,
            similar=likeness,
            rules=self._options.rules_for(piece.kind),
            ground=standing.ground,
            kind=piece.kind,
            evolution_id=piece.evolution_id,
            new_id=self._ids.new,
            actor=answered.actor,
            now=self._clock.now(),
            taken=lambda statement: said(statement) in standing.said,
        )

    async def _write(
        self, piece: Piece, read: Read, answered: Answered, asked: _Asked, planned: Plan, standing: Standing
    ) -> EvolutionResult | None:
        """None where the scope has moved on from where it was planned."""
        async with self._storage.writing() as work:
            now = self._clock.now()
            scope = await work.memory_log.lock(tenant=piece.tenant, scope=piece.scope, now=now)
            known = await find_result(work, tenant=piece.tenant, evolution_id=piece.evolution_id)
            if known is not None:
                return known
            await _check(work, piece, read, planned)
            await _check_messages(work, piece, read, asked.prints)
            if scope.changes != standing.ground.number:
                return None
            await _move(work, piece, read, now, failed=asked.failed)
            kept = record(piece, read, answered, planned, failed=asked.failed, now=now)
            await work.evolutions.add(tenant=piece.tenant, evolution=kept)
            await work.memory_log.apply(tenant=piece.tenant, scope=piece.scope, changes=planned.changes)
        return told(kept, planned.changes)


async def find_result(work: UnitOfWork, *, tenant: str, evolution_id: str) -> EvolutionResult | None:
    """What came of an evolution, None where it is not recorded."""
    found = await work.evolutions.by_id(tenant=tenant, evolution_ids=[evolution_id])
    if not found or found[0].kind != "evolution":
        return None
    return told(found[0], await work.memory_log.of_evolution(tenant=tenant, evolution_id=evolution_id))


async def _check(work: UnitOfWork, piece: Piece, read: Read, planned: Plan) -> None:
    """What a change touches must be as it was read, to the letter: how strong it is changes without a new version. What
    was redacted meanwhile must not live on in what the answer says of something else."""
    offered = {memory.memory_id: memory for memory in read.offered.values()}
    found = await work.memories.by_id(tenant=piece.tenant, memory_ids=list(offered))
    now = {memory.memory_id: memory for memory in found}
    touched = any(now.get(memory.memory_id) != memory for memory in planned.based_on)
    said = {name: memory.statement for name, memory in now.items()}
    if touched or said != {name: memory.statement for name, memory in offered.items()}:
        raise Overtaken(f"Others changed memories of {piece.scope!r:.80} meanwhile; evolve it again.")


async def _check_messages(work: UnitOfWork, piece: Piece, read: Read, prints: Mapping[str, str]) -> None:
    """What was deleted meanwhile, for good maybe, must not live on in a memory."""
    if await prints_of(work, piece, read.room_id, list(prints)) != prints:
        raise Overtaken(f"Messages of {read.room_id!r:.80} were edited or deleted meanwhile; evolve it again.")


async def _move(work: UnitOfWork, piece: Piece, read: Read, now: datetime, *, failed: bool) -> None:
    """Over what was read; where that failed it is still to be read, however long ago it was said by then."""
    its: dict[str, Any] = {"tenant": piece.tenant, "name": piece.watermark, "now": now}
    if not piece.is_group:
        await work.watermarks.move(**its, room_id=NO_ROOM, arrival=int(read.since.timestamp()), was=0)
    if failed and read.was:
        return
    to = read.first - 1 if failed else read.last
    if not await work.watermarks.move(**its, room_id=read.room_id, arrival=to, was=read.was):
        raise Overtaken(f"Others read the same messages of {piece.scope!r:.80}; evolve it again.")


def _can_be_done(wish: Wish, offered: Mapping[str, Memory]) -> bool:
    """Whether it speaks of nothing but what was offered."""
    try:
        return all(find(handle, offered) for handle in wish.handles)
    except InvalidInput:
        return False
