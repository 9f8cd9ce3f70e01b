"""Checkpoints that roomlore makes: summaries by a model or by choosing sentences, made when they are due or as durable
work."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from roomlore.core import summary
from roomlore.core.errors import BadModelOutput, Conflict, NotFound, RoomloreError, describe
from roomlore.core.json_values import storable
from roomlore.core.sessions.session import EXTRACT, Checkpoint, DueCheckpoint, Session
from roomlore.core.sessions.window import Segment, ShownWindow, WindowOptions, as_text, reopened, speaker, turns_after
from roomlore.core.summary.sentences import SpeakerText
from roomlore.ports.coordination import SESSIONS, Ids
from roomlore.ports.durable import DurableWork, Json, Steps, owner_prefix, work_name
from roomlore.ports.language import Summarizer, TenantSummarizer, TokenCounter
from roomlore.ports.shared import Backends, Service
from roomlore.services.sessions.checkpoints import Checkpointer, Wanted
from roomlore.services.sessions.reading import SessionReader

log = logging.getLogger(__name__)


_MODEL_SECONDS = 120.0
"""Less than the lease of a due checkpoint, so that a model that hangs delays nobody for longer."""

SUMMARY_TOKENS = 512
"""Longest summary that roomlore itself makes: a page, which holds what must not be lost of some hundred turns."""
_MIN_TOKENS = 16
_SHARE = 4
_AT_ONCE_CHARACTERS = 60_000
_TRIES = 3
_FIRST_PAUSE_SECONDS = 2.0
_LEASE_SECONDS = 180.0
_AT_ONCE = 8
_LOOK_SECONDS = 1.0
"""The longest wait before a checkpoint that becomes due while others are made is taken too."""
SUMMARY = "summary"
_NOTHING = "Nothing was said since the last checkpoint."


class Summaries:
    """Summaries of at most `SUMMARY_TOKENS`, and of a quarter of the model's window. The log says once that no model
    answers, and once that one does again."""

    def __init__(self, *, summarizer: Summarizer | None, tokens: TokenCounter) -> None:
        self._summarizer = summarizer
        self._tokens = tokens
        self._is_out = False

    async def source(self, segment: Segment, options: WindowOptions) -> Segment:
        """Return the segment that the next summary is to be made of."""
        return await asyncio.to_thread(reopened, segment, options, self._tokens.count)

    def limit(self, window: int) -> int:
        """Return the token limit of a summary for a model with `window`; a summary that fills the window leaves no room
        for the conversation."""
        return max(_MIN_TOKENS, min(SUMMARY_TOKENS, window // _SHARE))

    async def make(self, segment: Segment, *, max_tokens: int, tenant: str = "") -> tuple[str, str]:
        """Return a summary that replaces the current one and covers all messages after it, and what made it. The text
        is '' if there is nothing to summarise. `tenant`: whose quota it counts for."""
        summarizer = self._summarizer
        if isinstance(summarizer, TenantSummarizer):
            summarizer = summarizer.for_tenant(tenant)
        if summarizer is not None:
            try:
                async with asyncio.timeout(_MODEL_SECONDS):
                    made = await self._by_model(summarizer, segment, max_tokens), summarizer.name
                if self._is_out:
                    log.info("a model summarises conversations again")
                self._is_out = False
                return made
            except Exception as error:  # noqa: BLE001 - somebody else's class: whatever it raises, sentences are chosen
                if not self._is_out:
                    log.warning(
                        "no model summarised a conversation, sentences are chosen", extra={"why": describe(error)}
                    )
                self._is_out = True
        return await self._extracted(segment, max_tokens), EXTRACT

    async def _by_model(self, summarizer: Summarizer, segment: Segment, max_tokens: int) -> str:
        tongue = segment.language()
        answer = await summarizer.summarise(
            previous=segment.session.summary,
            conversation=as_text("", segment.uncovered(), tongue),
            language=tongue,
            max_tokens=max_tokens,
        )
        if not isinstance(answer, str):
            raise BadModelOutput("summariser_gave_nothing")
        return await asyncio.to_thread(self._kept, answer, segment, max_tokens)

    def _kept(self, answer: str, segment: Segment, max_tokens: int) -> str:
        """Return a model's summary with what it must not lose."""
        text = summary.accepted(answer, max_tokens=max_tokens, count=self._tokens.count)
        for part in _parts(segment):
            text = summary.completed(
                text, segment.session.summary, part, max_tokens=max_tokens, count=self._tokens.count
            )
        return text

    async def _extracted(self, segment: Segment, max_tokens: int) -> str:
        """Summarise a long conversation in parts, each with the summary of those before it: none takes long, and a
        caller that is cancelled need not wait for all."""
        text = segment.session.summary
        for part in _parts(segment):
            text = await asyncio.to_thread(summary.extract, text, part, max_tokens=max_tokens, count=self._tokens.count)
        return text


def _parts(segment: Segment) -> Iterator[list[SpeakerText]]:
    tongue = segment.language()
    part: list[SpeakerText] = []
    size = 0
    for message in segment.uncovered():
        part.append(SpeakerText(speaker(message, tongue), message.text))
        size += len(message.text)
        if size >= _AT_ONCE_CHARACTERS:
            yield part
            part, size = [], 0
    if part or not segment.uncovered():
        yield part


class AutoCheckpoints(Service):
    """Checkpoints of any tenant's conversations. `on`: True if due ones are made automatically."""

    def __init__(
        self,
        backends: Backends,
        *,
        on: bool,
        reader: SessionReader,
        checkpointer: Checkpointer,
        summaries: Summaries,
        options: WindowOptions,
    ) -> None:
        super().__init__(backends)
        self._on = on
        self._reader = reader
        self._checkpointer = checkpointer
        self._summaries = summaries
        self._options = options

    async def note(self, segment: Segment, *, window: int, shown: ShownWindow | None) -> None:
        """Note that this conversation requested a checkpoint, for a model of `window` tokens. `shown`: the part of it
        that fits, None if the summary itself does not."""
        if not self._on or segment.session.due or not (shown is None or self._is_needed(segment, shown)):
            return
        try:
            await self._schedule(segment.session, window)
        except RoomloreError as error:
            log.warning("a due checkpoint could not be noted", extra={"why": describe(error)})
        self._jobs.ask(SESSIONS)

    def _is_needed(self, segment: Segment, shown: ShownWindow) -> bool:
        """Return True if enough is new, in turns, or in messages of a long turn. If the last turns alone fill the
        window, a summary after every turn would not help."""
        new = segment.uncovered()
        if not any(message.text.strip() for message in new):
            return False
        turns = turns_after(segment.turns, segment.session.covered)
        enough = turns >= max(1, self._options.recent_turns // 2) or 2 * len(new) >= shown.count
        return shown.lost or segment.session.checkpoint is None or enough

    async def _schedule(self, session: Session, window: int) -> None:
        now = self._clock.now()
        async with self._storage.writing(session.tenant) as work:
            if session.version == 0:
                if await work.rooms.lock_known(room_id=session.conversation_id) is None:
                    return
                stored = await work.sessions.find(conversation_id=session.conversation_id)
                if stored and stored.version == 0:
                    await work.sessions.save(session=replace(stored, version=1, updated_at=now))
            await work.sessions.schedule(
                conversation_id=session.conversation_id, due=DueCheckpoint(at=now, window=window), was=None
            )

    async def run(self) -> None:
        """Run `catch_up` as a background job."""
        await self.catch_up()

    async def catch_up(self) -> int:
        """Make the checkpoints that are due, and return how many were made. Several run at once, so that a slow model
        delays no other."""
        made = 0
        running: set[asyncio.Task[bool]] = set()
        try:
            while True:
                taken = await self._take(_AT_ONCE - len(running))
                running |= {asyncio.ensure_future(self._attempt(*taken_checkpoint)) for taken_checkpoint in taken}
                if not running:
                    return made
                done, running = await asyncio.wait(running, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                made += sum(task.result() for task in done)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _take(self, limit: int) -> list[tuple[str, str, DueCheckpoint]]:
        if not limit:
            return []
        now = self._clock.now()
        lease = now + timedelta(seconds=_LEASE_SECONDS)
        async with self._storage.writing() as work:
            taken = await work.sessions.due(now=now, lease_until=lease, limit=limit)
        return [(tenant, conversation_id, replace(due, at=lease)) for tenant, conversation_id, due in taken]

    async def _attempt(self, tenant: str, conversation_id: str, due: DueCheckpoint) -> bool:
        """Try once; return True if a checkpoint was made. A failed one is tried again later, three times in all."""
        after: DueCheckpoint | None = None
        made = False
        try:
            made = await self.summarise(tenant, conversation_id, window=due.window) is not None
        except (Conflict, NotFound) as error:
            log.info("a checkpoint was not needed any more", extra={"why": describe(error)})
        except RoomloreError as error:
            after = self._postponed(due)
            log.warning("a checkpoint could not be made", extra={"why": describe(error), "tries": due.tries + 1})
            self._telemetry.count("roomlore_checkpoints_total", labels={"made_by": "auto", "result": "failed"})
        async with self._storage.writing(tenant) as work:
            await work.sessions.schedule(conversation_id=conversation_id, due=after, was=due.at)
        return made

    def _postponed(self, due: DueCheckpoint) -> DueCheckpoint | None:
        tries = due.tries + 1
        if tries >= _TRIES:
            return None
        pause = _FIRST_PAUSE_SECONDS * 2**due.tries
        return replace(due, at=self._clock.now() + timedelta(seconds=pause), tries=tries)

    async def summarise(self, tenant: str, conversation_id: str, *, window: int = 0) -> Checkpoint | None:
        """Summarise the conversation and put the summary in force.

        Return None if there are no messages since the last checkpoint and its summary is short enough for a model of
        `window` tokens (0: the setting).
        """
        options = self._options
        segment = await self._reader.load(tenant, conversation_id, recent_turns=options.recent_turns, kept=options.kept)
        session, new = segment.session, segment.uncovered()
        limit = self._summaries.limit(window or options.window)
        if not new and (session.checkpoint is None or session.checkpoint.tokens <= limit):
            return None
        source = await self._summaries.source(segment, options)
        summary, made_by = await self._summaries.make(source, max_tokens=limit, tenant=tenant)
        if not summary:
            return None
        wanted = Wanted(
            summary=summary,
            recent_turns=options.recent_turns,
            covers=new[-1].arrival if new else session.covered,
            expected=session.checkpoint_id,
            made_by=made_by,
        )
        checkpoint = await self._checkpointer.put(segment, wanted)
        log.info(
            "made a checkpoint", extra={"made_by": made_by, "turns": checkpoint.turns, "tokens": checkpoint.tokens}
        )
        return checkpoint


class DeferredSummaries:
    """Enqueue checkpoints that roomlore makes, and make them.

    The model's answer is not stored as a step of the work, so that a conversation is stored in one place alone. After a
    kill before its checkpoint is stored, the model is asked again; after that there is nothing left to summarise.
    """

    def __init__(self, *, automatic: AutoCheckpoints, durable: DurableWork, ids: Ids) -> None:
        self._automatic = automatic
        self._durable = durable
        self._ids = ids

    async def begin(self, tenant: str, conversation_id: str) -> str:
        """Enqueue one and return the id of the job."""
        work_id = work_name(tenant, SUMMARY, self._ids.new())
        partition = work_name(tenant, SUMMARY, storable(conversation_id))
        arguments = {"tenant": tenant, "room_id": conversation_id}
        await self._durable.start(SUMMARY, work_id=work_id, partition=partition, arguments=arguments)
        return work_id.removeprefix(owner_prefix(tenant))

    async def work(self, steps: Steps, arguments: Json) -> None:
        """Make one checkpoint, as durable work."""
        await steps.report("summarising")
        made = await self._automatic.summarise(arguments["tenant"], arguments["room_id"])
        await steps.report(f"checkpoint {made.number}: {made.tokens} tokens" if made else _NOTHING)

    async def sweep(self) -> list[str]:
        """Return nothing: only requested summaries are made."""
        return []
