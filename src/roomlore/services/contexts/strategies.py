"""The context strategies: reading the candidates from the store, choosing among them, and explaining the choice."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from roomlore.core.context import (
    RECENT_REASON,
    ContextOptions,
    Size,
    choose_recent,
    choose_threaded,
    choose_weighted,
    filled,
    follows_pause,
    has_topics,
    in_other_thread,
    least_messages,
    says_something,
    threaded_picks,
    topic_last,
    weighted_pool,
    within_tokens,
)
from roomlore.core.errors import InvalidInput
from roomlore.core.far import MIN_NEED, NOTHING_FAR, Past
from roomlore.core.linking.model import select
from roomlore.core.linking.room import MOST_COUNTED, RoomState
from roomlore.core.models import (
    MAYBE_FAR_REASON,
    Candidate,
    Entry,
    Explanation,
    Left,
    LinkKind,
    Room,
    Signals,
    StoredMessage,
    Target,
    Weighed,
)
from roomlore.core.relevance import MAX_HOPS, RelevanceScorer, RoomView, Weights, precedes

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork

_SURELY_NEEDED = 0.5
"""The probability that something from the past is needed from which on a pause adds no newest messages."""
_NOTICES = 50
"""The number of notices and empty messages among which something that was said is still looked for."""
_MAX_THREAD_CANDIDATES = 30
"""The number of likely candidates that are weighed besides the chosen messages and the window."""


class RoomsInMemory(Protocol):
    """The rooms that this process wrote to last. A state changes with the next write: it is read from at once."""

    def newest(self, tenant: str, room_id: str) -> Room | None:
        """Return the room as it was at the last write; None if it is not in memory."""

    def state(self, room: Room) -> RoomState | None:
        """Return the state of the room at its revision, None if it is not in memory."""

    async def is_current(self, work: "UnitOfWork", room: Room) -> bool:
        """Return True if nothing of the room changed since it was read."""

    def count_keywords(self, room: Room, counts: Mapping[str, int] | None = None) -> None:
        """Keep the keyword counts of a room at this revision with its state, by default those of its entries."""


class ThreadedChoice(NamedTuple):
    """The messages that `threaded` shows: the probability of each arrival, the reasons for those that are chosen for
    something other than the thread, and their entries in order of arrival."""

    chances: Mapping[int, float]
    reasons: Mapping[int, str]
    entries: Sequence[Entry]


class CandidateReader:
    """Read candidates through one unit of work; the pure functions of `core` choose among them.

    `past`: older messages that `threaded` may show. `rooms`: those that need not be read.
    """

    def __init__(self, *, work: "UnitOfWork", past: Past = NOTHING_FAR, rooms: RoomsInMemory | None = None) -> None:
        self._work = work
        self._past = past
        self._rooms = rooms

    def _state(self, room: Room) -> RoomState | None:
        return None if self._rooms is None else self._rooms.state(room)

    async def recent_window(self, target: Target, options: ContextOptions) -> list[Candidate]:
        """Return the plain window, for a context that needs no better choice or cannot have one."""
        return await self.recent(target, min(options.recent_messages, options.max_context_messages))

    async def recent(self, target: Target, limit: int) -> list[Candidate]:
        """Return the last `limit` messages."""
        message = target.entry.message
        before = await self._work.messages.recent(room_id=message.room_id, limit=limit, before=message.arrival)
        return choose_recent(before, limit, before=message)

    async def weighted_view(self, target: Target, options: ContextOptions) -> tuple[list[Entry], RoomView]:
        """Return the candidate pool of `weighted`, and what is known of the room to score it with."""
        message = target.entry.message
        near = await self._work.messages.tail(
            room_id=message.room_id,
            limit=options.candidate_limit,
            before=message.arrival,
            since=_hours_before(message.dated_at, options.time_window_hours),
        )
        if has_topics((message, *(entry.message for entry in near))):
            near = await self._of_topic(message, options.candidate_limit)
        chain = await self._work.messages.related(
            room_id=message.room_id,
            entry=target.entry,
            hops=MAX_HOPS,
            limit=options.chain_limit,
            before=message.arrival,
        )
        link = target.entry.link
        if link.kind is LinkKind.CORRECTED and link.parent is not None:
            chain = await self._work.messages.by_arrival(
                room_id=message.room_id, arrivals=sorted({link.parent, *(entry.message.arrival for entry in chain)})
            )
        pool = weighted_pool(target.entry, near, chain, options)
        return pool, await self.view(target, pool)

    async def weighted(self, target: Target, options: ContextOptions) -> list[Candidate]:
        """Return the best of the candidate pool by the weighted sum of the signals."""
        pool, view = await self.weighted_view(target, options)
        return choose_weighted(target.entry, pool, scorer(options), view, options)

    async def threaded(self, target: Target, options: ContextOptions) -> list[Candidate]:
        """Return the messages likely to share the thread of the target, and the older messages it needs."""
        chosen = await self.choice(target, options)
        view = await self.view(target, chosen.entries)
        return choose_threaded(view, chosen.chances, scorer(options), chosen.reasons)

    async def choice(self, target: Target, options: ContextOptions) -> ThreadedChoice:
        """Return what `threaded` shows. Messages that were deleted since, or are in another platform thread, are left
        out before the others are chosen. Notices are not shown as what may answer the question."""
        out: frozenset[int] = frozenset()
        notices: frozenset[int] = frozenset()
        while True:
            chances, reasons = await self._picks(target, options, out, notices)
            read = await self._entries(target.room, chances)
            entries = [entry for entry in read if not in_other_thread(entry.message, target.entry.message)]
            wrong = chances.keys() - {entry.message.arrival for entry in entries}
            maybe = [entry.message for entry in entries if reasons.get(entry.message.arrival) == MAYBE_FAR_REASON]
            silent = {message.arrival for message in maybe if not says_something(message)}
            if not wrong and not silent:
                return ThreadedChoice(chances, reasons, entries)
            out |= wrong
            notices |= silent

    async def _picks(
        self, target: Target, options: ContextOptions, out: frozenset[int], notices: frozenset[int]
    ) -> tuple[dict[int, float], dict[int, str]]:
        message, most = target.entry.message, options.max_context_messages
        link, past = target.entry.link, self._past
        if out or notices:
            link, past = link.without(out), past.without(out | notices)
        likely = past.choose(most) if past.needed >= MIN_NEED else dict(select(link, most))
        if message.root_id:
            certain = dict.fromkeys(await self._platform_thread(message, message.root_id, most), 1.0)
            likely = {**certain, **likely, **certain}  # the root first, then the newest: of equals the first are taken
        chosen = threaded_picks(link, likely, most)
        least = least_messages(message, target.room, options)
        if not least:
            return chosen, dict(past.reasons)
        resumes = not message.root_id and past.needed < _SURELY_NEEDED
        paused = resumes and follows_pause(message.dated_at, target.previous_at)
        if len(chosen) >= least and not paused and not past.answers and message.topic_id is None:
            return chosen, {}
        before = [recent for recent in await self._newest(target, least) if recent.arrival not in out]
        if has_topics((message, *before)) and before:
            paused = resumes and follows_pause(message.dated_at, before[-1].dated_at)
        shown, added_answers = filled(chosen, before, least, link, most=most, paused=paused, answers=past.answers)
        added = shown.keys() - chosen.keys()
        needed = chosen.keys() | (added & added_answers) if past.needed >= MIN_NEED else added & added_answers
        reasons = {arrival: reason for arrival, reason in past.reasons.items() if arrival in needed}
        return dict(shown), {**dict.fromkeys(added, RECENT_REASON), **reasons}

    async def _platform_thread(self, message: StoredMessage, root_id: str, limit: int) -> list[int]:
        """Return the arrivals of the root and of the newest messages of a platform thread, these newest first."""
        arrivals = await self._work.messages.of_root(
            room_id=message.room_id, root_id=root_id, limit=limit, before=message.arrival
        )
        return [arrival for arrival in arrivals if arrival < message.arrival]

    async def _newest(self, target: Target, least: int) -> Sequence[StoredMessage]:
        """Return the newest messages before the target, those of its topic last, more than `least` of the room and of
        the topic as some may be notices."""
        message, most = target.entry.message, least + _NOTICES
        state = self._state(target.room)
        entries = None if state is None else state.before(message.arrival, most)
        if entries is not None:
            known = [entry.message for entry in entries]
        else:
            known = await self._work.messages.recent(room_id=target.room.room_id, limit=most, before=message.arrival)
        if not has_topics((message, *known)):
            return known
        return topic_last(message, known, [entry.message for entry in await self._of_topic(message, most)])

    async def _of_topic(self, message: StoredMessage, limit: int) -> list[Entry]:
        return await self._work.messages.of_topic(
            room_id=message.room_id, topic_id=message.topic_id, limit=limit, before=message.arrival
        )

    async def _entries(self, room: Room, arrivals: Collection[int]) -> list[Entry]:
        """Return these entries in order of arrival. Those with metadata are always read: the entries in memory share
        the values of their metadata with the caller, who may change them."""
        state = self._state(room)
        found = [] if state is None else map(state.at, sorted(arrivals))
        known = [entry for entry in found if entry is not None and not entry.message.metadata]
        if len(known) == len(arrivals):
            return known
        missing = sorted(set(arrivals).difference(entry.message.arrival for entry in known))
        read = await self._work.messages.by_arrival(room_id=room.room_id, arrivals=missing)
        return sorted([*known, *read], key=lambda entry: entry.message.arrival)

    async def view(self, target: Target, pool: Sequence[Entry]) -> RoomView:
        """Look up only the words of messages that share one with the target: no others can count."""
        room = target.room
        if (counts := await self._counts_in_memory(room)) is not None:
            return RoomView(target=target.entry, pool=pool, messages=room.messages, counts=counts)
        mine = frozenset(target.entry.features.keywords)
        sharing = [entry for entry in pool if not mine.isdisjoint(entry.features.keywords)]
        wanted = mine.union(*(entry.features.keywords for entry in sharing)) if sharing else ()
        counts = await self._work.messages.keyword_counts(room_id=room.room_id, keywords=list(wanted))
        return RoomView(target=target.entry, pool=pool, messages=room.messages, counts=counts)

    async def _counts_in_memory(self, room: Room) -> Mapping[str, int] | None:
        """Return the counts of all keywords of a small room in memory, read if they are not kept with it yet."""
        state = self._state(room)
        if self._rooms is None or state is None or room.messages > MOST_COUNTED:
            return None
        if state.keyword_counts is None:
            every = None if state.holds_all else await self._work.messages.every_keyword_count(room=room)
            if every is None and not state.holds_all:
                return None
            self._rooms.count_keywords(room, every)
            state = self._state(room)  # it may have changed meanwhile
        return None if state is None else state.keyword_counts


def _hours_before(at: datetime, hours: float) -> datetime:
    """Return the time so many hours earlier, or the earliest time there is: platforms write year 1 for an unknown
    date."""
    return at - min(timedelta(hours=hours), at - datetime.min.replace(tzinfo=UTC))


def scorer(options: ContextOptions) -> RelevanceScorer:
    return _scorer(options.weights, options.half_life_minutes)


@lru_cache(maxsize=256)
def _scorer(weights: Weights, half_life_minutes: float) -> RelevanceScorer:
    return RelevanceScorer(weights, half_life_minutes)


class Explainer:
    """Weigh candidates through one unit of work."""

    def __init__(self, *, work: "UnitOfWork", past: Past = NOTHING_FAR) -> None:
        self._work = work
        self._past = past
        self.gatherer = CandidateReader(work=work, past=past)

    async def weighted(self, target: Target, options: ContextOptions) -> list[Weighed]:
        """Weigh the candidate pool by the sum of the signals."""
        pool, view = await self.gatherer.weighted_view(target, options)
        weigher = scorer(options)
        taken = _by_arrival(choose_weighted(target.entry, pool, weigher, view, options))
        weighed = []
        for entry in (candidate for candidate in pool if precedes(candidate.message, target.entry.message)):
            score, signals = weigher.score(view, entry)
            left: Left = "below" if score < options.relevance_threshold else "crowded"
            weighed.append(_weighed(entry, score, taken, left, signals=signals))
        return weighed

    async def threaded(self, target: Target, options: ContextOptions) -> list[Weighed]:
        """Weigh the recent messages by the probability that they share the thread of the target."""
        most, link = options.max_context_messages, target.entry.link
        chosen, reasons, _ = await self.gatherer.choice(target, options)
        chances = {**link.thread_candidates.by_arrival(), **self._past.chances, **chosen}
        likeliest = sorted(chances, key=lambda arrival: -chances[arrival])[:_MAX_THREAD_CANDIDATES]
        window = [entry.message.arrival for entry in await self.gatherer.recent(target, most)]
        entries = await self._work.messages.by_arrival(
            room_id=target.entry.message.room_id, arrivals=sorted({*chosen, *likeliest, *window})
        )
        view = await self.gatherer.view(target, entries)
        weigher = scorer(options)
        taken = _by_arrival(choose_threaded(view, chosen, weigher, reasons))
        full: Left = "crowded" if len(taken) >= most else "unlikely"
        return [
            _weighed(
                entry,
                chances.get(entry.message.arrival, 0.0),
                taken,
                full if entry.message.arrival in chances else "unseen",
                signals=weigher.signals(view, entry),
            )
            for entry in entries
            if precedes(entry.message, target.entry.message)
        ]


def _by_arrival(chosen: Iterable[Candidate]) -> dict[int, Candidate]:
    return {candidate.message.arrival: candidate for candidate in chosen}


def _weighed(entry: Entry, score: float, taken: Mapping[int, Candidate], left: Left, *, signals: Signals) -> Weighed:
    known = taken.get(entry.message.arrival)
    if known is not None:
        return _taken(known)
    return Weighed(message=entry.message, score=score, left=left, signals=signals)


class Strategy(NamedTuple):
    """A way to choose a context.

    `gather` reads and chooses, in people's order. `weigh` also tells what was left out and why; without it only the
    chosen messages are shown.
    """

    gather: Callable[[CandidateReader, Target, ContextOptions], Awaitable[list[Candidate]]]
    weigh: Callable[[Explainer, Target, ContextOptions], Awaitable[list[Weighed]]] | None = None


async def _recent(gatherer: CandidateReader, target: Target, options: ContextOptions) -> list[Candidate]:
    return await gatherer.recent(target, options.max_context_messages)


STRATEGIES: dict[str, Strategy] = {
    "threaded": Strategy(CandidateReader.threaded, Explainer.threaded),
    "weighted": Strategy(CandidateReader.weighted, Explainer.weighted),
    "recent": Strategy(_recent),
}


def strategy_named(name: str, known: Mapping[str, Strategy] = STRATEGIES) -> Strategy:
    """Return the strategy. Raise `InvalidInput` for an unknown name."""
    strategy = known.get(name)
    if strategy is None:
        raise InvalidInput("choice_not_allowed", name="strategy", value=f"{name!r:.60}", known=", ".join(known))
    return strategy


async def choose(
    gatherer: CandidateReader,
    target: Target,
    options: ContextOptions,
    size: Size,
    known: Mapping[str, Strategy] = STRATEGIES,
) -> list[Candidate]:
    """Return the messages that the configured strategy takes, within the token budget, in people's order. `size`: the
    tokens of messages that are shown together."""
    if options.enable_intelligent_memory:
        candidates = await strategy_named(options.strategy, known).gather(gatherer, target, options)
    else:
        candidates = await gatherer.recent_window(target, options)
    return within_tokens(candidates, options.max_context_tokens, size)


async def explain(
    explainer: Explainer,
    target: Target,
    options: ContextOptions,
    size: Size,
    known: Mapping[str, Strategy] = STRATEGIES,
) -> list[Explanation]:
    """Return what each strategy takes and leaves, in the order in which they are known. `size`: as of `choose`."""
    return [await _explained(explainer, target, options, size, name, strategy) for name, strategy in known.items()]


async def _explained(
    explainer: Explainer, target: Target, options: ContextOptions, size: Size, name: str, strategy: Strategy
) -> Explanation:
    in_force = name == (options.strategy if options.enable_intelligent_memory else "recent")
    if in_force and not options.enable_intelligent_memory:
        weighed = [_taken(candidate) for candidate in await explainer.gatherer.recent_window(target, options)]
    elif strategy.weigh:
        weighed = await strategy.weigh(explainer, target, options)
    else:
        weighed = [_taken(candidate) for candidate in await strategy.gather(explainer.gatherer, target, options)]
    weighed = _inside_budget(weighed, options.max_context_tokens, size)
    return Explanation(
        target=target.entry,
        strategy=name,
        in_force=in_force,
        weighed=tuple(sorted(weighed, key=lambda message: (message.message.at, message.message.arrival))),
        tokens=sum(scored.message.tokens for scored in weighed if scored.taken),
        window_tokens=target.window_tokens,
        window_messages=target.window_messages,
        threshold=options.relevance_threshold if name == "weighted" else None,
    )


def _taken(candidate: Candidate) -> Weighed:
    score = None if candidate.signals is None else candidate.score
    return Weighed(
        message=candidate.message,
        score=score,
        signals=candidate.signals,
        reason=candidate.reason,
        answers=candidate.answers,
    )


def _inside_budget(weighed: list[Weighed], most: int | None, size: Size) -> list[Weighed]:
    """Mark the messages that do not fit in the token budget as left out."""
    taken = [
        Candidate(
            message=scored.message,
            score=scored.score or 0.0,
            signals=scored.signals,
            reason=scored.reason,
            answers=scored.answers,
        )
        for scored in sorted(weighed, key=lambda scored: (scored.message.at, scored.message.arrival))
        if scored.taken
    ]
    kept = {candidate.message.arrival for candidate in within_tokens(taken, most, size)}
    return [
        replace(scored, reason="", left="crowded") if scored.taken and scored.message.arrival not in kept else scored
        for scored in weighed
    ]
