"""Choose the earlier messages of a context: the strategies `recent`, `weighted` and `threaded`."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain, islice
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from roomlore.core.attachments import with_attachments
from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.json_values import HIDDEN, in_json
from roomlore.core.models import Candidate, Entry, Link, LinkKind, Message, Role, Room, Signals, StoredMessage
from roomlore.core.relevance import (
    MAX_WEIGHT,
    SIGNALS,
    RelevanceScorer,
    RoomView,
    Weights,
    addresses,
    precedes,
    same_root,
)
from roomlore.core.sessions.window import Count
from roomlore.core.transcript import ShownMessage, Speakers, Transcript, language_of, local, people_of, speaks, timed

SAME_THREAD_FROM = 0.5
PAUSE = timedelta(minutes=3)
MORE_ANSWERS = 5
"""The number of messages found by search that are shown beside what is likelier."""
SMALL_ROOM, NEARLY_SMALL_ROOM = 12, 16
"""Up to `SMALL_ROOM` messages before a message are shown whole. If there are up to `NEARLY_SMALL_ROOM`, the newest fill
its context to `SMALL_ROOM` messages."""
RECENT_REASON = "recent"
ANSWERS_FROM = 0.5
"""Least probability of a link that is shown to a model if the platform does not state it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The context of one message.

    `messages` is in people's order (`sent_at`, arrival) and never holds the trigger. `tokens`: tokens of the texts
    chosen; `window_tokens`: tokens of the plain last-N window. `parent`: id of the message among them that the trigger
    answers, if any. `degraded`: None, or the reason for a simpler answer. `zone`: the time zone of the settings.
    """

    context_id: str
    room_id: str
    message_id: str
    strategy: str
    messages: tuple[Candidate, ...]
    parent: str | None
    parent_probability: float
    tokens: int
    window_tokens: int
    window_messages: int
    build_ms: float
    degraded: str | None = None
    arm: str | None = None
    zone: Any = field(default=UTC, metadata=HIDDEN)  # a tzinfo, of which Pydantic makes no schema

    @property
    @in_json
    def context_summary(self) -> str:
        """A line for each thread that is shown, in the order they begin: its title, and who speaks in it. Titles are
        made of the messages shown. '' if the strategy tells no threads, as `recent`."""
        from roomlore.core.digest.talks import summary_of  # its patterns take a tenth of a second to compile

        return summary_of(
            [message.entry for message in self.messages if message.entry is not None and speaks(message.message)]
        )

    def to_messages(
        self, *, agent: str | None = None, query: Message | None = None, zone: tzinfo | None = None
    ) -> list[dict[str, str]]:
        """Return the context as messages for a chat model, ready to send behind a system message.

        `agent`: the sender whose messages are the model's own, role `assistant`; by default every message whose role
        is `assistant`. All others have the role `user` and begin with the time and the speaker's name. `query`: the
        message to answer, put last. `zone`: the time zone of the times, by default that of the settings.
        """

        def own(message: Message) -> bool:
            return _by_assistant(message) if agent is None else message.sender_id == agent

        return list(self._transcript(query, zone, own).messages())

    def to_prompt(self, *, query: Message | None = None, zone: tzinfo | None = None) -> str:
        """Return the context as one text, each message with its time and its speaker's name, '' for no message.

        `query`: the message to answer, put last. `zone`: the time zone of the times, by default that of the settings.
        """
        return self._transcript(query, zone, _by_nobody).prompt()

    def _transcript(self, query: Message | None, zone: tzinfo | None, own: Callable[[Message], bool]) -> Transcript:
        _check("query", query, query is None or isinstance(query, Message), "the roomlore.Message to answer")
        known = zone is None or isinstance(zone, tzinfo)
        _check("zone", zone, known, "a time zone, such as zoneinfo.ZoneInfo('Asia/Shanghai')")
        there = zone or self.zone
        shown = timed(self.messages, there)
        if query is not None:
            answered = self.parent if self.parent_probability >= ANSWERS_FROM else None
            shown.append(ShownMessage(query, query.reply_to or answered, local(query.sent_at, there)))
        return _transcript(shown, query, own)


def _by_assistant(message: Message) -> bool:
    return message.role is Role.ASSISTANT


def _by_nobody(_: Message) -> bool:
    return False


def _transcript(shown: Sequence[ShownMessage], query: Message | None, own: Callable[[Message], bool]) -> Transcript:
    messages = [shown_message.message for shown_message in shown]
    names = {name for message in messages if own(message) for name in (message.sender_id, message.sender_name) if name}
    people = people_of((message for message in messages if not own(message)), {})
    speakers = Speakers(people, agents=names)
    return Transcript(shown, speakers=speakers, own=own, language=language_of(messages, query))


def rendered_tokens(candidates: Sequence[Candidate], *, zone: tzinfo, count: Count) -> int:
    """Return the tokens of the candidates as `to_prompt` and `to_messages` show them, of the longer of the two."""
    shown = timed(candidates, zone)
    chat = [message["content"] for message in _transcript(shown, None, _by_assistant).messages()]
    whole, *parts = count([_transcript(shown, None, _by_nobody).prompt(), *chat])
    return max(whole, sum(parts))


class _Range(NamedTuple):
    """The range of a setting: integer or float, from `low` (exclusive if `open_below`) to `high`."""

    whole: bool
    low: float
    high: float
    open_below: bool = False

    def __contains__(self, value: object) -> bool:
        kinds = int if self.whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        return self.low <= value <= self.high and not (self.open_below and value == self.low)

    def __str__(self) -> str:
        noun = "a whole number" if self.whole else "a number"
        bounds = f"above {self.low} and up to {self.high}" if self.open_below else f"from {self.low} to {self.high}"
        return f"{noun} {bounds}"


_RANGES = {
    "max_context_messages": _Range(whole=True, low=1, high=200),
    "min_context_messages": _Range(whole=True, low=0, high=200),
    "max_context_tokens": _Range(whole=True, low=1, high=1_000_000),
    "recent_messages": _Range(whole=True, low=1, high=200),
    "time_window_hours": _Range(whole=False, low=0, high=8760, open_below=True),
    "relevance_threshold": _Range(whole=False, low=0, high=1),
    "half_life_minutes": _Range(whole=False, low=0, high=525_600, open_below=True),
    "candidate_limit": _Range(whole=True, low=1, high=400),
    "chain_limit": _Range(whole=True, low=0, high=100),
    "context_build_timeout_seconds": _Range(whole=False, low=0, high=300, open_below=True),
}
_WEIGHT_NAMES = {f"{signal}_weight": signal for signal in SIGNALS}
_WEIGHT = _Range(whole=False, low=0, high=MAX_WEIGHT)
_OPTIONAL = "max_context_tokens"
_PROCESS_WIDE = "context_build_timeout_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOptions:
    """The options for choosing contexts. Raises `InvalidInput` naming setting, value and range.

    `strategies`: the allowed names for `strategy`; None leaves the check to the service. `min_context_messages`: the
    number up to which `threaded` adds the newest messages, never above `max_context_messages`; 0 for none.
    `max_context_tokens`: the most tokens of a rendered context, None for no limit. `candidate_limit` and `chain_limit`
    bound the pool of `weighted`, `time_window_hours` its age; `relevance_threshold` is its least score, in [0, 1].
    `recent_messages` is the size of the plain window. `context_recall`: True if `threaded` also searches for messages
    said long ago.
    """

    strategy: str = "threaded"
    enable_intelligent_memory: bool = True
    fallback_on_error: bool = True
    context_recall: bool = True
    max_context_messages: int = 20
    min_context_messages: int = 8
    max_context_tokens: int | None = None
    recent_messages: int = 10
    time_window_hours: float = 24
    relevance_threshold: float = 0.3
    weights: Weights = field(default_factory=Weights)
    half_life_minutes: float = 10
    candidate_limit: int = 50
    chain_limit: int = 15
    context_build_timeout_seconds: float = 5.0
    strategies: tuple[str, ...] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        known = self.strategies or (self.strategy,)
        good = isinstance(self.strategy, str) and self.strategy in known
        _check("strategy", self.strategy, good, f"one of {', '.join(map(str, known))}")
        for name in ("enable_intelligent_memory", "fallback_on_error", "context_recall"):
            value = getattr(self, name)
            _check(name, value, isinstance(value, bool), "true or false")
        for name, allowed in _RANGES.items():
            value = getattr(self, name)
            _check(name, value, value in allowed or (value is None and name in _OPTIONAL), str(allowed))

        for name, signal in _WEIGHT_NAMES.items():
            value = getattr(self.weights, signal)
            _check(name, value, value in _WEIGHT, str(_WEIGHT))

    def flat(self) -> dict[str, Any]:
        """Return every setting that a room may override, by name; the weights as `reply_chain_weight` and so on."""
        single = (f.name for f in fields(self) if f.name not in ("weights", "strategies", _PROCESS_WIDE))
        weights = {name: getattr(self.weights, signal) for name, signal in _WEIGHT_NAMES.items()}
        return {name: getattr(self, name) for name in single} | weights

    def overridden(self, changes: Mapping[str, Any]) -> "ContextOptions":
        """Return these options with the given settings replaced; names as in `flat`."""
        if not changes:
            return self
        unknown = sorted(str(name) for name in changes if name not in self.flat())
        if unknown:
            known = ", ".join(self.flat())
            raise InvalidInput("room_setting_unknown", name=repr(unknown[0]), known=known)
        weights = {_WEIGHT_NAMES[name]: value for name, value in changes.items() if name in _WEIGHT_NAMES}
        single = {name: value for name, value in changes.items() if name not in _WEIGHT_NAMES}
        return replace(self, weights=replace(self.weights, **weights), **single)

    def decided(
        self, room: Room, *, given: Mapping[str, Any], arm: Mapping[str, Any] = MappingProxyType({})
    ) -> "ContextOptions":
        """Return the options of one context: what the call gives overrides the settings of the room's arm, those the
        room's own, and those these. Raise `Conflict` for the room's own; what the call gives fits these."""
        try:
            return self.overridden({**room.settings, **arm, **given})
        except InvalidInput as error:
            raise Conflict("room_settings_unfit", room=repr(room.room_id), error=error) from error


def from_json(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a room's settings as JSON gives them, where 20.0 is a whole number too."""
    return {name: int(value) if _is_whole(name, value) else value for name, value in changes.items()}


def _is_whole(name: str, value: object) -> bool:
    return isinstance(value, float) and value.is_integer() and name in _RANGES and _RANGES[name].whole


def _check(name: str, value: object, good: bool, allowed: str) -> None:
    if not good:
        raise InvalidInput("value_not_allowed", name=name, value=repr(value), allowed=allowed)


def choose_recent(messages: Iterable[StoredMessage], n: int, *, before: StoredMessage | None = None) -> list[Candidate]:
    """Return the last `n` messages by arrival, or those that precede `before`, with score 0 and no signals."""
    kept = [message for message in messages if before is None or precedes(message, before)]
    newest = sorted(kept, key=lambda message: message.arrival)[-n:] if n > 0 else []
    return in_order(
        Candidate(message=message, score=0.0, signals=None, reason=RECENT_REASON, answers=message.reply_to)
        for message in newest
    )


def choose_weighted(
    target: Entry, pool: Iterable[Entry], scorer: RelevanceScorer, view: RoomView, options: ContextOptions
) -> list[Candidate]:
    """Return the best of the pool by weighted sum: at most `max_context_messages`, none below `relevance_threshold`.

    Of equal scores the later arrival wins. `view` is that of `target`.
    """
    pool = {e.message.arrival: e for e in pool if precedes(e.message, target.message)}.values()
    ids = _ids(pool)
    scored = [(*scorer.score(view, entry), entry) for entry in pool]
    good = [row for row in scored if row[0] >= options.relevance_threshold]
    good.sort(key=lambda row: (-row[0], -row[2].message.arrival))
    return in_order(
        Candidate(
            message=entry.message,
            score=score,
            signals=signals,
            reason=_why(view, entry, scorer, signals),
            answers=answered(entry, ids),
            entry=entry,
        )
        for score, signals, entry in good[: options.max_context_messages]
    )


def weighted_pool(target: Entry, near: Iterable[Entry], chain: Sequence[Entry], options: ContextOptions) -> list[Entry]:
    """Return the candidates of `weighted` in order of arrival, each once: the first `chain_limit` of the reply chain,
    of any age, and the newest `candidate_limit` of the near messages within the time window."""
    window = timedelta(hours=options.time_window_hours)
    message = target.message
    chained = [entry for entry in chain if precedes(entry.message, message)][: options.chain_limit]
    own = (e for e in near if e.message.topic_id == message.topic_id)
    fresh = [e for e in own if precedes(e.message, message) and message.at - e.message.at <= window]
    fresh.sort(key=lambda entry: entry.message.arrival)
    pool = {entry.message.arrival: entry for entry in (*chained, *fresh[-options.candidate_limit :])}
    return [pool[arrival] for arrival in sorted(pool)]


def least_messages(target: StoredMessage, room: Room, options: ContextOptions) -> int:
    """Return the least number of messages that `threaded` shows for a message, if there are so many before it."""
    if not options.min_context_messages:
        return 0
    before = min(room.messages, target.arrival) - 1
    small = min(before, SMALL_ROOM) if before <= NEARLY_SMALL_ROOM else 0
    return min(max(options.min_context_messages, small), options.max_context_messages)


def says_something(message: StoredMessage) -> bool:
    """Return True for what a person or an agent said or sent: no notice, no result of a tool, no empty text."""
    return message.role is not Role.SYSTEM and speaks(message) and bool(with_attachments(message, "en").strip())


def in_other_thread(message: StoredMessage, target: StoredMessage) -> bool:
    """Return True if the platform says that both are in threads, and not in the same one."""
    return None not in (message.root_id, target.root_id) and not same_root(target, message)


def has_topics(messages: Iterable[Message]) -> bool:
    return any(message.topic_id is not None for message in messages)


def topic_last(
    target: Message, before: Sequence[StoredMessage], of_topic: Sequence[StoredMessage] = ()
) -> Sequence[StoredMessage]:
    """Return the messages of a room with those of the target's topic at the end. `of_topic`: those of the topic, if
    they are not among `before`."""
    if not has_topics((target, *before)):
        return before
    own = of_topic or [message for message in before if message.topic_id == target.topic_id]
    return [*(message for message in before if message.topic_id != target.topic_id), *own]


def follows_pause(at: datetime, previous_at: datetime | None) -> bool:
    """Return True if nothing was said for `PAUSE` before a message of this time."""
    return previous_at is not None and at - previous_at >= PAUSE


class Filled(NamedTuple):
    """The messages to show, arrival to probability, and those that search found and that are shown for it: the best,
    and those that were added."""

    chances: Mapping[int, float]
    found: frozenset[int]


def filled(
    chosen: Mapping[int, float],
    before: Sequence[StoredMessage],
    least: int,
    link: Link,
    *,
    most: int,
    paused: bool = False,
    answers: Mapping[int, float] = MappingProxyType({}),
) -> Filled:
    """Return the messages to show: the chosen ones, so many of the newest of those before that there are `least`, and
    up to `MORE_ANSWERS` more of what search found. These are at most a quarter of `most`, and take the places of the
    least likely of the thread if none are left.

    `before`: messages in order of arrival, those of the topic last. In a small room all may be added, else those that
    say something. `paused`: the message follows a pause; then the newest, up to two fifths of `most`, come before what
    is merely likely. `answers`: what search found, likeliest first.
    """
    spoken = (message.arrival for message in reversed(before) if len(before) <= SMALL_ROOM or says_something(message))
    likeliest = sorted(chosen, key=lambda arrival: -chosen[arrival])
    best = set(islice(answers, MORE_ANSWERS))
    sure = [arrival for arrival in likeliest if arrival == link.parent or arrival in best]
    late = list(islice(spoken, min(least, most * 2 // 5))) if paused else []
    wanted = list(dict.fromkeys((*sure, *late, *likeliest)))
    more_answers = [arrival for arrival in answers if arrival not in wanted][: min(MORE_ANSWERS, most // 4)]
    shown = wanted[: max(min(len(sure), most), most - len(more_answers))]
    more_answers = more_answers[: most - len(shown)]
    lacking = max(0, min(least, most - len(more_answers)) - len(shown))
    others = (arrival for arrival in chain(late, spoken) if arrival not in shown and arrival not in more_answers)
    shown += list(islice(others, lacking))
    mates = link.thread_candidates.by_arrival()
    chances = {
        arrival: chosen.get(arrival, answers.get(arrival, mates.get(arrival, 0.0)))
        for arrival in (*shown, *more_answers)
    }
    return Filled(chances, frozenset({*best, *more_answers}))


def threaded_picks(link: Link, chosen: Mapping[int, float], max_messages: int) -> dict[int, float]:
    """Return arrival to probability of the linker's selection, likeliest first, at most `max_messages`. The likeliest
    parent is included unless the message more likely starts a new thread."""
    picks = sorted(chosen.items(), key=lambda pick: -pick[1])[:max_messages]
    if link.parent is None or link.kind is LinkKind.NEW or link.parent in dict(picks):
        return dict(picks)
    kept = [*picks[: max_messages - 1], (link.parent, chosen.get(link.parent, link.parent_probability))]
    return dict(sorted(kept, key=lambda pick: -pick[1]))


def choose_threaded(
    view: RoomView,
    chances: Mapping[int, float],
    scorer: RelevanceScorer,
    reasons: Mapping[int, str] = MappingProxyType({}),
) -> list[Candidate]:
    """Return the chosen messages (arrival to probability), scored by the probability of sharing the target's thread.

    `reasons`: by arrival, for messages chosen for a reason other than the thread. The pool of the view may hold more
    than was chosen and lack messages deleted since. The signals are those of `weighted`; they are informative and
    decide nothing here.
    """
    ids = _ids(entry for entry in view.pool if entry.message.arrival in chances)
    return in_order(
        [
            Candidate(
                message=entry.message,
                score=min(1.0, max(0.0, chances[arrival])),
                signals=scorer.signals(view, entry),
                reason=reasons.get(arrival) or _thread_reason(view.target, entry.message, chances[arrival]),
                answers=answered(entry, ids),
                entry=entry,
            )
            for arrival, entry in view.known.items()
            if arrival in chances
        ]
    )


def answered(entry: Entry, ids: Mapping[int, str]) -> str | None:
    """Return the id of the message that this one answers, if a person or the platform says so or it is likely enough.

    `ids`: those of the messages around it, by arrival.
    """
    link = entry.link
    likely = link.is_certain or link.parent_probability >= ANSWERS_FROM
    guessed = ids.get(link.parent or 0) if likely and link.kind is not LinkKind.NEW else None
    return guessed if link.kind is LinkKind.CORRECTED else entry.message.reply_to or guessed


def _ids(entries: Iterable[Entry]) -> dict[int, str]:
    return {entry.message.arrival: entry.message.id for entry in entries}


Size = Callable[[Sequence[Candidate]], int]
_LEAST_FRAME = 4
"""The least tokens of a line's time and name."""


def within_tokens(candidates: Sequence[Candidate], most: int | None, size: Size) -> list[Candidate]:
    """Return the candidates that take at most `most` tokens together: the likeliest first, each that still fits.

    `size`: the tokens of candidates that are shown together. Of equal scores the later arrival wins. The order is kept.
    """
    if most is None or size(candidates) <= most:
        return list(candidates)
    likeliest = sorted(candidates, key=lambda candidate: (-candidate.score, -candidate.message.arrival))

    def among(kept: Sequence[Candidate]) -> list[Candidate]:
        arrivals = {member.message.arrival for member in kept}
        return [candidate for candidate in candidates if candidate.message.arrival in arrivals]

    first = bisect_left(range(1, len(likeliest)), True, key=lambda number: size(among(likeliest[:number])) > most)
    kept = among(likeliest[:first])
    used = size(kept)
    for candidate in likeliest[first + 1 :]:
        if (
            used + candidate.message.tokens + _LEAST_FRAME <= most
            and (tried := size(more := among([*kept, candidate]))) <= most
        ):
            kept, used = more, tried
    return kept


_PARENT_REASONS = {
    LinkKind.PLATFORM: "directly answered (platform reply)",
    LinkKind.CORRECTED: "directly answered (corrected by a person)",
}
_PLACE = attrgetter("message.sent_at", "message.arrival")


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates in people's order, by (`sent_at`, arrival)."""
    return sorted(candidates, key=_PLACE)


def _thread_reason(target: Entry, message: StoredMessage, chance: float) -> str:
    link = target.link
    if message.arrival == link.parent and link.kind is not LinkKind.NEW:
        return _PARENT_REASONS.get(link.kind) or f"direct parent, {link.parent_probability:.2f} likely"
    if same_root(target.message, message):
        return f"same platform thread ({chance:.2f})"
    return f"{'likely' if chance >= SAME_THREAD_FROM else 'possibly'} the same thread ({chance:.2f})"


_MIN_SHARE = 0.05


def _why(view: RoomView, entry: Entry, scorer: RelevanceScorer, signals: Signals) -> str:
    """Name the two signals that add most; the second only if it adds at least 0.05."""
    shares = dict(zip(SIGNALS, scorer.shares_of(signals), strict=True))
    first, second = sorted(shares, key=lambda name: -shares[name])[:2]
    names = [first, second] if shares[second] >= _MIN_SHARE else [first]
    return ", ".join(_PHRASES[name](view, entry, signals) for name in names)


def _chain_phrase(view: RoomView, entry: Entry, signals: Signals) -> str:
    target, message = view.target.message, entry.message
    if message.id == target.reply_to:
        return "directly answered (platform reply)"
    if hops := view.hops.get(message.id):
        return f"{hops} replies away" if hops > 1 else "a direct reply"
    return "its sender is addressed" if addresses(view.target, entry) else "same platform thread"


def _time_phrase(view: RoomView, entry: Entry, signals: Signals) -> str:
    minutes = abs((view.target.message.at - entry.message.at).total_seconds()) / 60
    return "less than a minute apart" if minutes < 1 else f"{minutes:.0f} min apart"


def _keyword_phrase(view: RoomView, entry: Entry, signals: Signals) -> str:
    theirs = set(entry.features.keywords)
    shared = [keyword for keyword in view.target.features.keywords if keyword in theirs]
    return "shared words: " + ", ".join(sorted(shared, key=lambda word: -view.rarity([word]))[:3])


def _speaker_phrase(view: RoomView, entry: Entry, signals: Signals) -> str:
    return "same sender" if signals.user_continuity == 1 else "the sender was talking with them"


def _mention_phrase(view: RoomView, entry: Entry, signals: Signals) -> str:
    return "one mentions the other's sender" if signals.mention_relation == 1 else "both mention the same person"


_PHRASES: Mapping[str, Callable[[RoomView, Entry, Signals], str]] = {
    "reply_chain": _chain_phrase,
    "user_continuity": _speaker_phrase,
    "time_decay": _time_phrase,
    "mention_relation": _mention_phrase,
    "keyword_overlap": _keyword_phrase,
}
