"""Checkpoints that roomlore makes by itself, behind the callers' backs.

That one is due is written beside the session, so that a killed process loses none. A summary holds no lock; whoever put
a checkpoint in force meanwhile wins.
"""

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta

from roomlore.core.errors import Conflict, NotFound, RoomloreError, describe
from roomlore.core.sessions.models import Checkpoint, Due, Session
from roomlore.core.sessions.window import Segment, Shown, WindowOptions, turns_after
from roomlore.ports.coordination import Clock, Jobs, Telemetry
from roomlore.ports.sessions import SESSIONS
from roomlore.ports.storage import Storage
from roomlore.services.sessions.checkpoints import Checkpointer, Wanted
from roomlore.services.sessions.reader import SessionReader
from roomlore.services.sessions.summaries import Summaries

_TRIES = 3
_FIRST_PAUSE_SECONDS = 2.0
_LEASE_SECONDS = 180.0
_AT_ONCE = 8
_LOOK_SECONDS = 1.0
"""How soon a checkpoint that comes due while others are made is taken too."""

log = logging.getLogger(__name__)


class AutoCheckpoints:
    """Checkpoints of any tenant's conversations. `on`: whether those that are due are made without being asked."""

    def __init__(
        self,
        *,
        on: bool,
        storage: Storage,
        reader: SessionReader,
        checkpointer: Checkpointer,
        summaries: Summaries,
        jobs: Jobs,
        clock: Clock,
        telemetry: Telemetry,
        options: WindowOptions,
    ) -> None:
        self._on = on
        self._storage = storage
        self._reader = reader
        self._checkpointer = checkpointer
        self._summaries = summaries
        self._jobs = jobs
        self._clock = clock
        self._telemetry = telemetry
        self._recent_turns = options.recent_turns
        self._window = options.window

    async def note(self, segment: Segment, *, window: int, shown: Shown | None) -> None:
        """Notes that this conversation asked for a checkpoint, for a model that takes `window` tokens. `shown`: what of
        it fits, None where the summary itself does not."""
        if not self._on or segment.session.due or not (shown is None or self._worth_it(segment, shown)):
            return
        try:
            await self._schedule(segment.session, window)
        except RoomloreError as error:
            log.warning("a due checkpoint could not be noted", extra={"why": describe(error)})
        self._jobs.ask(SESSIONS)

    def _worth_it(self, segment: Segment, shown: Shown) -> bool:
        """Where the last turns alone fill the window a summary after every turn would help nobody: enough must be new,
        in turns, or in messages where a turn goes on and on."""
        new = segment.uncovered()
        if not any(message.text.strip() for message in new):
            return False
        turns = turns_after(segment.turns, segment.session.covered)
        enough = turns >= max(1, self._recent_turns // 2) or 2 * len(new) >= shown.count
        return shown.lost or segment.session.checkpoint is None or enough

    async def _schedule(self, session: Session, window: int) -> None:
        named = {"tenant": session.tenant, "conversation_id": session.conversation_id}
        now = self._clock.now()
        async with self._storage.writing() as work:
            if session.version == 0:
                await work.rooms.lock(tenant=session.tenant, room_id=session.conversation_id, now=now)
                stored = await work.sessions.find(**named)
                if stored and stored.version == 0:
                    await work.sessions.save(session=replace(stored, version=1, updated_at=now))
            await work.sessions.schedule(**named, due=Due(at=now, window=window), was=None)

    async def run(self) -> None:
        """`catch_up` as a background job."""
        await self.catch_up()

    async def catch_up(self) -> int:
        """Makes the checkpoints that are due, and says how many were. Several at once: one whose model is slow holds up
        no other."""
        made = 0
        running: set[asyncio.Task[bool]] = set()
        try:
            while True:
                taken = await self._take(_AT_ONCE - len(running))
                running |= {asyncio.ensure_future(self._attempt(*one)) for one in taken}
                if not running:
                    return made
                done, running = await asyncio.wait(running, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                made += sum(task.result() for task in done)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _take(self, limit: int) -> list[tuple[str, str, Due]]:
        if not limit:
            return []
        now = self._clock.now()
        lease = now + timedelta(seconds=_LEASE_SECONDS)
        async with self._storage.writing() as work:
            taken = await work.sessions.due(now=now, lease_until=lease, limit=limit)
        return [(tenant, conversation_id, replace(due, at=lease)) for tenant, conversation_id, due in taken]

    async def _attempt(self, tenant: str, conversation_id: str, due: Due) -> bool:
        """One try; whether it made a checkpoint. One that fails is tried again later, three times in all."""
        after: Due | None = None
        made = False
        try:
            made = await self.summarise(tenant, conversation_id, window=due.window) is not None
        except (Conflict, NotFound) as error:
            log.info("a checkpoint was not needed any more", extra={"why": describe(error)})
        except RoomloreError as error:
            after = self._again(due)
            log.warning("a checkpoint could not be made", extra={"why": describe(error), "tries": due.tries + 1})
            self._telemetry.count("roomlore_checkpoints_total", labels={"made_by": "auto", "result": "failed"})
        async with self._storage.writing() as work:
            await work.sessions.schedule(tenant=tenant, conversation_id=conversation_id, due=after, was=due.at)
        return made

    def _again(self, due: Due) -> Due | None:
        tries = due.tries + 1
        if tries >= _TRIES:
            return None
        pause = _FIRST_PAUSE_SECONDS * 2**due.tries
        return replace(due, at=self._clock.now() + timedelta(seconds=pause), tries=tries)

    async def summarise(self, tenant: str, conversation_id: str, *, window: int = 0) -> Checkpoint | None:
        """Summarises the conversation and puts that in force; None where nothing was said since the last checkpoint and
        its summary is short enough for a model that takes `window` tokens (0: what the settings say)."""
        segment = await self._reader.load(tenant, conversation_id, recent_turns=self._recent_turns)
        session, new = segment.session, segment.uncovered()
        limit = self._summaries.limit(window or self._window)
        if not new and (session.checkpoint is None or session.checkpoint.tokens <= limit):
            return None
        summary, made_by = await self._summaries.make(segment, max_tokens=limit)
        if not summary:
            return None
        wanted = Wanted(
            summary=summary,
            recent_turns=self._recent_turns,
            covers=new[-1].arrival if new else session.covered,
            expected=session.checkpoint_id,
            made_by=made_by,
        )
        checkpoint = await self._checkpointer.put(segment, wanted)
        log.info(
            "made a checkpoint", extra={"made_by": made_by, "turns": checkpoint.turns, "tokens": checkpoint.tokens}
        )
        return checkpoint
