"""Titles of threads that a model writes: durable work that follows the messages of a room, never on their path."""

import asyncio
import hashlib
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta

from roomlore.core.digest.talks import Talk, is_said
from roomlore.core.digest.written import PromptWindow, is_title_due, read_titles, reasons_for_log, windows_of
from roomlore.core.errors import BadModelOutput, ModelUnavailable, NotFound
from roomlore.core.models import Entry
from roomlore.core.transcript import spoken_text
from roomlore.ports.durable import DurableWork, Json, Steps, rooms_behind, work_name
from roomlore.ports.language import LanguageModels, Prompts
from roomlore.ports.shared import Backends, Service
from roomlore.ports.titles import NEWEST
from roomlore.services.digest.writing import WritingOptions, ask, language_for
from roomlore.storage import UnitOfWork

log = logging.getLogger(__name__)

TITLES = "titles"
"""The work that has a model write the titles of a room, the background job that enqueues it, and the watermark of a
room up to which it is done."""
_PROMPT = "thread_titles"
_ANSWER_TOKENS = 2048
_FEWEST = 3
"""Arrivals above the watermark from which a room is looked at, and messages of a thread with a title."""
_MANY = 50
_QUIET = timedelta(minutes=10)
"""A room gets its titles once so many messages are new, or nothing was said for this time, so that a conversation is
not named again with each of its messages."""
_PIECE = 4_000
"""Arrivals that one step looks at. Its titles are stored together."""
_THREADS = 200
NEWEST_DAYS = 30
"""How old the newest message of a thread may be for a title by the model: few look at older ones in lists."""
_AT_ONCE = 16
"""Windows for which a model is asked at the same time."""
_TRY_AGAIN_SECONDS = 3_600
"""How often the titles of a room are tried if no model answers."""
_ROOMS = 500
"""Rooms that are enqueued in one sweep; the next one continues."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer for one window. `made_by`: the provider and the model, '' if nothing came."""

    titles: Mapping[int, str]
    made_by: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class _Piece:
    """The threads to name, by the arrival of the first message. `gone`: those that are not to be named any more."""

    talks: Mapping[int, Talk]
    sizes: Mapping[int, int]
    gone: Sequence[int]


class ThreadTitler(Service):
    """The titles of the threads of all tenants."""

    def __init__(
        self,
        backends: Backends,
        *,
        durable: DurableWork,
        models: LanguageModels,
        prompts: Prompts,
        options: WritingOptions,
    ) -> None:
        super().__init__(backends)
        self._durable = durable
        self._models = models
        self._prompts = prompts
        self._options = options

    async def sweep(self) -> list[str]:
        """Enqueue the titles that are due and return the ids of the new work; none if no model can be asked."""
        if not await self._models.has_provider(self._options.model):
            return []
        async with self._storage.reading() as work:
            stale = await work.titles.stale_rooms(limit=4 * _ROOMS)
        enqueued: list[str] = []
        for tenant, room_id in stale:
            if len(enqueued) >= _ROOMS // 2:  # rooms whose titles always fail stay among these
                break
            if work_id := await self._enqueue(tenant, room_id):
                enqueued.append(work_id)
        async for room in rooms_behind(self._storage, TITLES, _FEWEST):
            if len(enqueued) >= _ROOMS:
                break
            if await self._is_ripe(room.tenant, room.room_id, room.mark):
                work_id = await self._enqueue(room.tenant, room.room_id)
                enqueued += [work_id] if work_id else []
        return enqueued

    async def _is_ripe(self, tenant: str, room_id: str, mark: int) -> bool:
        async with self._storage.reading(tenant) as work:
            room = await work.rooms.find(room_id=room_id)
        if room is None or room.last_sent_at is None:
            return False
        return room.next_arrival - 1 - mark >= _MANY or self._clock.now() - room.last_sent_at >= _QUIET

    async def _enqueue(self, tenant: str, room_id: str) -> str:
        """Enqueue the work under an id of the watermark and the hour: once, and again later if it came to nothing.
        Return its id, '' if it was enqueued before."""
        async with self._storage.reading(tenant) as work:
            mark = (await work.progress.marks(room_id=room_id, names=[TITLES])).get(TITLES, 0)
        own = hashlib.sha256(room_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]
        hour = int(self._clock.now().timestamp()) // _TRY_AGAIN_SECONDS
        work_id = work_name(tenant, TITLES, f"{mark:011d}-{hour}-{own}")
        arguments = {"tenant": tenant, "room_id": room_id}
        new = await self._durable.start(
            TITLES, work_id=work_id, partition=work_name(tenant, TITLES, own), arguments=arguments
        )
        return work_id if new else ""

    async def work(self, steps: Steps, arguments: Json) -> None:
        """Have the titles of a room written and stored, piece by piece, as durable work. What a step returns holds no
        words of the room."""
        tenant, room_id = str(arguments["tenant"]), str(arguments["room_id"])
        named, mark, last = 0, -1, 0
        while mark < last:
            async with self._storage.reading(tenant) as work:
                room = await work.rooms.find(room_id=room_id)
                marks = await work.progress.marks(room_id=room_id, names=[TITLES])
            if room is None:
                break
            last, mark = room.next_arrival - 1, marks.get(TITLES, 0)

            async def piece(mark: int = mark, through: int = min(mark + _PIECE, last)) -> Json:
                return await self._name(tenant, room_id, mark, through)

            done = await steps.once(f"piece-{mark}", piece)
            named += int(done["named"])
            if done["failed"]:
                await steps.report(f"stopped after {named} titles of {room_id!r:.80}: {done['failed']}")
                return
            mark = max(int(done["through"]), mark)
            await steps.report(f"{named} titles of {room_id!r:.80}, up to message {mark} of {last}")

    async def _name(self, tenant: str, room_id: str, mark: int, through: int) -> Json:
        """Name the threads that grew between two arrivals, and move the watermark; not if no request was answered."""
        async with self._storage.reading(tenant) as work:
            piece = await self._due(work, room_id, mark, through)
            people = await work.rooms.participants(room_id=room_id) if piece.talks else {}
        windows = await asyncio.to_thread(
            windows_of, piece.talks, room_id=room_id, people=people, zone=self._options.zone, most=None
        )
        gate = asyncio.Semaphore(_AT_ONCE)
        answers = await asyncio.gather(*(self._answer_to(tenant, window, piece.talks, gate) for window in windows))
        failed = [answer.failed for answer in answers if answer.failed]
        if failed and len(failed) == len(answers):
            return {"named": 0, "through": mark, "failed": failed[0][:200]}
        pairs = zip(windows, answers, strict=True)
        unasked = {thread for window, answer in pairs if answer.failed for thread in window.talks.values()}
        named = await self._keep(tenant, room_id, piece, answers, unasked, mark, through)
        return {"named": named, "through": through, "failed": ""}

    async def _due(self, work: UnitOfWork, room_id: str, mark: int, through: int) -> _Piece:
        grown = await work.titles.grown(room_id=room_id, after=mark, through=through)
        threads = [thread.thread for thread in grown if is_title_due(thread.messages, thread.titled)]
        named: defaultdict[int, list[Entry]] = defaultdict(list)
        for start in range(0, len(threads), _THREADS):
            for entry in await work.messages.members_of(
                room_id=room_id, threads=threads[start : start + _THREADS], each=NEWEST
            ):
                if is_said(entry):
                    named[entry.link.thread].append(entry)
        since = self._clock.now() - timedelta(days=NEWEST_DAYS)
        talks = {
            thread: Talk(thread, tuple(its))
            for thread, its in named.items()
            if len(its) >= _FEWEST and its[-1].message.dated_at >= since
        }
        gone = [thread.thread for thread in grown if not thread.titled and thread.thread not in talks]
        return _Piece(talks, {thread.thread: thread.messages for thread in grown}, gone)

    async def _answer_to(
        self, tenant: str, window: PromptWindow, talks: Mapping[int, Talk], gate: asyncio.Semaphore
    ) -> _Answer:
        texts = [entry.message.text for number in window.talks.values() for entry in talks[number].entries]
        try:
            async with gate:
                answer = await ask(
                    self._models,
                    self._prompts,
                    self._options,
                    _PROMPT,
                    language=language_for((), texts),
                    max_tokens=_ANSWER_TOKENS,
                    values={"conversations": window.text},
                    tenant=tenant,
                )
        except (ModelUnavailable, NotFound) as error:
            return _Answer({}, failed=str(error))
        except BadModelOutput:
            return _Answer({})
        titles, refused = await asyncio.to_thread(read_titles, answer.text, window)
        if refused:
            log.info("titles by a model were refused", extra={"refused": reasons_for_log(refused)})
        return _Answer(titles, f"{answer.provider}/{answer.model_id}")

    async def _keep(
        self,
        tenant: str,
        room_id: str,
        piece: _Piece,
        answers: Sequence[_Answer],
        unasked: Set[int],
        mark: int,
        through: int,
    ) -> int:
        """Store the titles of the threads whose messages are as they were shown, and move the watermark. Return how
        many there are. A thread without a usable title is not asked about until it grows; one that is `unasked`, since
        its request failed, is asked about again."""
        now = self._clock.now()
        titles = {thread: title for answer in answers for thread, title in answer.titles.items()}
        made_by = next((answer.made_by for answer in answers if answer.made_by), "")
        async with self._storage.writing(tenant) as work:
            if await work.rooms.lock_known(room_id=room_id) is None:
                return 0
            same = await self._unchanged(work, room_id, piece.talks)
            await work.titles.put(
                room_id=room_id,
                titles={
                    thread: (titles.get(thread, ""), 0 if thread in unasked else piece.sizes[thread]) for thread in same
                },
                made_by=made_by,
                now=now,
            )
            await work.titles.drop_stale(room_id=room_id, threads=piece.gone)
            if through > mark:
                await work.progress.move_mark(room_id=room_id, name=TITLES, arrival=through, was=mark, now=now)
        return sum(thread in titles for thread in same)

    async def _unchanged(self, work: UnitOfWork, room_id: str, talks: Mapping[int, Talk]) -> list[int]:
        """Return the threads of which each message that was shown still says the same, in the same thread."""
        shown = {entry.message.arrival: entry for talk in talks.values() for entry in talk.entries}
        now = await work.messages.by_arrival(room_id=room_id, arrivals=sorted(shown))
        same = {entry.message.arrival for entry in now if _identity(entry) == _identity(shown[entry.message.arrival])}
        return [
            thread for thread, talk in talks.items() if all(entry.message.arrival in same for entry in talk.entries)
        ]


def _identity(entry: Entry) -> tuple[int, str, str]:
    return entry.link.thread, entry.message.sender_id, spoken_text(entry.message)
