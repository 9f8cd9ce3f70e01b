"""The verb of `lore.evaluation`: how well roomlore does on one's own rooms, without labels and without a model."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from roomlore.core.audience import check_viewer
from roomlore.core.context import ContextOptions
from roomlore.core.digest.digest import Digest
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.evaluation import (
    RANKS,
    WINDOW_MESSAGES,
    Evaluation,
    ForbiddenText,
    Leak,
    Question,
    QuestionScore,
    RoomScore,
    Share,
    context_without_reply,
    read_forbidden,
    read_questions,
    sampled,
)
from roomlore.core.linking.model import LinkModel
from roomlore.core.linking.room import WINDOW
from roomlore.core.memory.memory import MemoryAnswer
from roomlore.core.models import Room
from roomlore.ports.shared import Backends, Service
from roomlore.ports.verbs import ContextVerbs, MessageVerbs
from roomlore.storage import UnitOfWork

SAMPLE = 300
MAX_SAMPLED = 100_000
_HITS = max(RANKS)
_LOOKED_AT = 50
_ROOMS = 500


Remembers = Callable[..., Awaitable[MemoryAnswer]]
"""A search of memories, called with a scope, a query, `limit`, `threshold` and `viewer`."""


Digests = Callable[..., Awaitable[Digest]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """The content of the context of one reply."""

    found: bool
    in_window: bool
    size: int
    tokens: int
    window_tokens: int


class EvaluationService(Service):
    """Evaluate the rooms of one tenant. Nothing is written."""

    def __init__(
        self,
        backends: Backends,
        *,
        tenant: str,
        model: LinkModel,
        options: ContextOptions,
        messages: MessageVerbs,
        remembers: Remembers,
        digest: Digests,
        contexts: ContextVerbs,
    ) -> None:
        super().__init__(backends)
        self._contexts = contexts
        self._tenant = tenant
        self._model = model
        self._options = options
        self._messages = messages
        self._remembers = remembers
        self._digest = digest

    async def run(
        self,
        rooms: Sequence[str] | None = None,
        *,
        questions: Iterable[Mapping[str, Any]] | None = None,
        forbidden: Iterable[Mapping[str, Any]] | None = None,
        sample: int = SAMPLE,
        seed: int = 0,
    ) -> Evaluation:
        """Tell how well roomlore does on these rooms, by default all.

        Platform replies are hidden one at a time, and it is seen if the context still holds the answered message,
        beside the last 20; at most `sample` replies of each room, chosen by `seed`. `questions`: rows with `question`,
        `room_id` or `viewer`, and `answers` (ids of messages) or `words` that an answer contains. `forbidden`: rows
        with a `text` and the `viewer` who must not be shown it. Raise `InvalidInput`, `NotFound`, `StorageUnavailable`.
        """
        if not isinstance(sample, int) or not 1 <= sample <= MAX_SAMPLED:
            raise InvalidInput("number_from_one_to_outside", name="sample", value=f"{sample!r:.60}", most=MAX_SAMPLED)
        read = read_questions(questions or ())
        hidden = read_forbidden(forbidden or ())
        for secret in hidden:
            check_viewer(secret.viewer)
        begun = self._clock.monotonic()
        scores = [await self._room(room_id, sample, seed) for room_id in await self._named(rooms)]
        return Evaluation(
            rooms=tuple(scores),
            asked=await self._score_of(read) if read else None,
            forbidden=len(hidden),
            leaks=tuple([leak for hidden_text in hidden for leak in await self._leaks(hidden_text)]),
            seed=seed,
            seconds=self._clock.monotonic() - begun,
        )

    async def _named(self, rooms: Sequence[str] | None) -> list[str]:
        if rooms is not None:
            return [rooms] if isinstance(rooms, str) else list(dict.fromkeys(rooms))
        async with self._storage.reading(self._tenant) as work:
            room_rows = await work.rooms.page(after=None, limit=_ROOMS)
        return [room.room_id for room in room_rows]

    async def _room(self, room_id: str, sample: int, seed: int) -> RoomScore:
        async with self._storage.reading(self._tenant) as work:
            room = await work.rooms.get(room_id=room_id)
            replies = await work.messages.platform_replies(room_id=room_id)
            people = await work.rooms.participants(room_id=room_id)
        cases = [await self._case(room, arrival, people) for arrival in sampled(replies, sample, seed, room_id)]
        known = [case for case in cases if case is not None]
        return RoomScore(
            room_id=room_id,
            messages=room.messages,
            replies=len(replies),
            found=Share(hits=sum(case.found for case in known), cases=len(known)),
            window=Share(hits=sum(case.in_window for case in known), cases=len(known)),
            size=fmean(case.size for case in known) if known else 0.0,
            tokens=sum(case.tokens for case in known),
            window_tokens=sum(case.window_tokens for case in known),
        )

    async def _case(self, room: Room, arrival: int, people: Mapping[str, str]) -> _Case | None:
        """Return what the context of one reply holds; None if the message is gone."""
        tenant, room_id = self._tenant, room.room_id
        async with self._storage.reading(tenant) as work:
            entries = await work.messages.tail(room_id=room_id, limit=WINDOW + 1, before=arrival + 1)
            if not entries or entries[-1].message.arrival != arrival:
                return None
            entry, before = entries[-1], entries[:-1]
            chosen = await asyncio.to_thread(
                context_without_reply,
                entry,
                before,
                room=room,
                people=people,
                model=self._model,
                options=self._options.overridden(room.settings),
            )
            taken = await work.messages.messages_by_arrival(room_id=room_id, arrivals=chosen)
        window = [earlier.message for earlier in before[-WINDOW_MESSAGES:]]
        return _Case(
            found=entry.link.parent in chosen,
            in_window=entry.link.parent in {message.arrival for message in window},
            size=len(taken),
            tokens=sum(message.tokens for message in taken),
            window_tokens=sum(message.tokens for message in window),
        )

    async def _score_of(self, questions: Sequence[Question]) -> QuestionScore:
        hits = dict.fromkeys(RANKS, 0)
        missed: list[str] = []
        tokens: list[int] = []
        times: list[float] = []
        for question in questions:
            answer = await self._messages.search(
                question.room_id, question.question, viewer=question.viewer, limit=_HITS
            )
            times.append(answer.search_ms)
            tokens.append(sum(hit.message.tokens for hit in answer.hits))
            right = (
                n for n, hit in enumerate(answer.hits, 1) if question.answered_by(hit.message.id, hit.message.text)
            )
            rank = next(right, None)
            if rank is None:
                missed.append(question.question)
            for most in RANKS:
                hits[most] += rank is not None and rank <= most
        contexts = [
            await self._context(other_question.room_id or "", other_question)
            for other_question in questions
            if other_question.message_id is not None
        ]
        return QuestionScore(
            recall={str(most): Share(hits=count, cases=len(questions)) for most, count in hits.items()},
            missed=tuple(missed),
            tokens=fmean(tokens),
            ms=fmean(times),
            contexts=Share(hits=sum(held for held, _ in contexts), cases=len(contexts)),
            context_tokens=fmean(tokens for _, tokens in contexts) if contexts else 0.0,
        )

    async def _context(self, room_id: str, question: Question) -> tuple[bool, int]:
        """Return if the context of the message that asks holds an answer, and its tokens."""
        made = await self._contexts.compare(room_id, question.message_id)
        used = next((each for each in made if each.in_force), made[0])
        return any(question.answered_by(each.message.id, each.message.text) for each in used.taken), used.tokens

    async def _leaks(self, forbidden: ForbiddenText) -> list[Leak]:
        """Look for a text in what its viewer finds: among messages, memories and the digests of rooms."""
        answer = await self._messages.search(None, forbidden.text, viewer=forbidden.viewer, limit=_LOOKED_AT)
        where = {
            f"search, room {hit.message.room_id}" for hit in answer.hits if _holds(hit.message.text, forbidden.text)
        }
        async with self._storage.reading(self._tenant) as work:
            scopes, rooms = await self._places(work)
        for scope in scopes:
            memories = await self._remembers(
                scope, forbidden.text, limit=_LOOKED_AT, threshold=0.0, viewer=forbidden.viewer
            )
            if any(_holds(hit.memory.statement, forbidden.text) for hit in memories.hits):
                where.add(f"memories, {scope}")
        for room_id in rooms:
            if await self._is_told(room_id, forbidden):
                where.add(f"digest, room {room_id}")
        return [Leak(text=forbidden.text, viewer=forbidden.viewer, where=place) for place in sorted(where)]

    async def _places(self, work: UnitOfWork) -> tuple[list[str], list[str]]:
        """Return all scopes of memories, those of agents too, and the rooms, at most 500 rooms."""
        rooms = [room.room_id for room in await work.rooms.page(after=None, limit=_ROOMS)]
        scopes: list[str] = []
        while page := await work.memories.scopes(after=scopes[-1] if scopes else None, limit=_ROOMS):
            scopes += [scope_row.scope for scope_row in page]
        return scopes, rooms

    async def _is_told(self, room_id: str, forbidden: ForbiddenText) -> bool:
        try:
            made = await self._digest(room_id, viewer=forbidden.viewer, max_tokens=10_000, mode="offline")
        except NotFound:
            return False
        texts = (text for entry in made.entries for text in (entry.title, *(line.text for line in entry.lines)))
        return any(_holds(text, forbidden.text) for text in texts)


def _holds(text: str, wanted: str) -> bool:
    return wanted.casefold() in text.casefold()
