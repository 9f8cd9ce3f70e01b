"""Score the relevance of an earlier message: five signals in [0, 1] and their weighted sum.

| signal | 1 | less |
|---|---|---|
| reply_chain | the parent or a direct reply | halves with each further hop, up to 5; 0.0625 in the same platform thread without such a path; 0.5 if the target begins with the candidate's sender's name and neither message has platform reply data |
| user_continuity | the same sender | 0.5 for somebody the sender addressed or answered within the last 10 messages of the room |
| time_decay | sent at the same time | halves with each half-life between them |
| mention_relation | either mentions the other's sender | 0.5 if both mention the same person |
| keyword_overlap | all of one side's keywords are shared | rarity of the shared over that of the less rare side |
"""  # noqa: E501

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from functools import cached_property, lru_cache

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Entry, LinkKind, MessageFeatures, Signals, StoredMessage
from roomlore.core.text import fold, rarity

SIGNALS = tuple(signal.name for signal in fields(Signals))
MAX_HOPS = 5
SAME_ROOT = 0.0625
ADDRESSED = 0.5
CONTINUITY_MESSAGES = 10


MAX_WEIGHT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of the signals: finite, not negative, not all 0; used in proportion to their sum.

    Raises `InvalidInput`.
    """

    reply_chain: float = 0.40
    user_continuity: float = 0.15
    time_decay: float = 0.20
    mention_relation: float = 0.15
    keyword_overlap: float = 0.10

    def __post_init__(self) -> None:
        for name, value in zip(SIGNALS, astuple(self), strict=True):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value < math.inf:
                raise InvalidInput("weight_invalid", name=name, value=repr(value))
        if not any(astuple(self)):
            raise InvalidInput("weights_zero")

    @classmethod
    def of(cls, values: Iterable[float]) -> "Weights":
        """Build from five numbers in the order of the table."""
        return cls(**dict(zip(SIGNALS, values, strict=True)))

    def normalised(self) -> tuple[float, ...]:
        """Return the weights in the order of the table with sum 1; weights whose sum is 1 stay exactly as they are."""
        exponent = math.frexp(max(astuple(self)))[1]
        shares = [math.ldexp(value, -exponent) for value in astuple(self)]
        return tuple(share / math.fsum(shares) for share in shares)


class _Rarity(dict[int, float]):
    """The number of messages that have a keyword to its rarity among all messages: most keywords share few numbers."""

    def __init__(self, messages: int) -> None:
        super().__init__()
        self._messages = messages

    def __missing__(self, having: int) -> float:
        value = self[having] = rarity.__wrapped__(having, self._messages)  # rooms grow: few are asked for again
        return value


@dataclass(frozen=True, kw_only=True)
class RoomView:
    """The state of a room when the context of `target` is requested.

    `pool`: the candidates, with other known messages of the reply chain. `messages`: the number of messages in the
    room. `counts`: the number of messages with each keyword; without counts all words are equally rare.

    Messages after the target are ignored, whatever the lists contain; the one exception is the message it replies to,
    which may have arrived late if it was sent no later.
    """

    target: Entry
    pool: Sequence[Entry] = ()
    messages: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def known(self) -> dict[int, Entry]:
        """The earlier messages by arrival, without the target itself."""
        return {entry.message.arrival: entry for entry in self.pool if precedes(entry.message, self.target.message)}

    @cached_property
    def hops(self) -> dict[str, int]:
        """Message id to the length of the shortest path of platform replies from the target, up to `MAX_HOPS`. A
        corrected link counts as a reply, in place of the platform's.

        Replies are followed in both directions, so the other replies to the target's parent are 2 hops away. A message
        that is only known as the target of a reply is a step like any other.
        """
        beside: dict[str, set[str]] = {}
        for entry in (self.target, *self.known.values()):
            child, parent = entry.message.id, self._parent(entry)
            if parent and parent != child:
                beside.setdefault(child, set()).add(parent)
                beside.setdefault(parent, set()).add(child)
        return _distances(self.target.message.id, beside)

    def _parent(self, entry: Entry) -> str | None:
        if entry.link.kind is not LinkKind.CORRECTED:
            return entry.message.reply_to
        answered = self.known.get(entry.link.parent or 0)
        return answered.message.id if answered else None

    @cached_property
    def own_rarities(self) -> Mapping[str, float]:
        """The rarity of each of the target's keywords."""
        by_count, counts = self._rarity, self.counts
        return {keyword: by_count[counts.get(keyword, 0)] for keyword in self.target.features.keywords}

    @cached_property
    def own_rarity(self) -> float:
        """The summed rarity of the target's keywords."""
        return math.fsum(self.own_rarities.values())

    def rarity(self, keywords: Iterable[str]) -> float:
        """Return the summed rarity of keywords in the room, exactly rounded, so that the order of a set does not
        matter. A keyword without a count is in no message."""
        by_count, counts = self._rarity, self.counts
        return math.fsum([by_count[counts.get(keyword, 0)] for keyword in keywords])

    @cached_property
    def _rarity(self) -> _Rarity:
        return _Rarity(self.messages)

    @cached_property
    def own_names(self) -> frozenset[str]:
        return _names_of(self.target.message)


def partners(
    message: StoredMessage,
    before: Sequence[tuple[StoredMessage, MessageFeatures]],
    sender_of: Callable[[str], str | None],
) -> tuple[str, ...]:
    """Return the people whom the sender addressed or answered (by a platform reply or a quotation) in the last 10
    messages of the room.

    `before`: the messages before it in order of arrival, with their features; only the last 10 count. `sender_of`: the
    sender of the message with an id, None if unknown.
    """
    people: dict[str | None, None] = {}
    for earlier, features in before[-CONTINUITY_MESSAGES:]:
        if earlier.sender_id == message.sender_id:
            answered, reply = earlier.reply_to, features.reply
            people.update(dict.fromkeys(features.addressed))
            people[sender_of(answered) if answered else None] = None
            people[reply.sender_id if reply else None] = None
    return tuple(person for person in people if person)


def precedes(message: StoredMessage, target: StoredMessage) -> bool:
    """Return True if a message may be shown for the target: it arrived earlier, or the target replies to it and it was
    sent no later."""
    if message.arrival < target.arrival:
        return message.id != target.id
    late_parent = message.id == target.reply_to and message.at <= target.at
    return late_parent and message.arrival != target.arrival and message.id != target.id


def _distances(start: str, beside: Mapping[str, Iterable[str]]) -> dict[str, int]:
    distances = {start: 0}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        if distances[here] == MAX_HOPS:
            continue
        for there in beside.get(here, ()):
            if there not in distances:
                distances[there] = distances[here] + 1
                queue.append(there)
    return distances


class RelevanceScorer:
    """The weighted sum of the five signals; deterministic.

    `half_life_minutes` must be above 0. Raises `InvalidInput`.
    """

    def __init__(self, weights: Weights | None = None, half_life_minutes: float = 10) -> None:
        if not 0 < half_life_minutes < math.inf:
            raise InvalidInput("half_life_invalid", value=repr(half_life_minutes))
        self._shares = (weights or Weights()).normalised()
        self._half_life = 60.0 * half_life_minutes

    def score(self, view: RoomView, candidate: Entry) -> tuple[float, Signals]:
        """Return (total in [0, 1], the five signals) of one candidate."""
        signals = self.signals(view, candidate)
        return self.total(signals), signals

    def total(self, signals: Signals) -> float:
        """Return the weighted sum, in [0, 1]."""
        return min(1.0, math.fsum(self.shares_of(signals)))

    def shares_of(self, signals: Signals) -> tuple[float, ...]:
        """Return the contribution of each signal to the total, in the order of the table."""
        return tuple(share * value for share, value in zip(self._shares, as_row(signals), strict=True))

    def signals(self, view: RoomView, candidate: Entry) -> Signals:
        return Signals(
            reply_chain=_reply_chain(view, candidate),
            user_continuity=_user_continuity(view, candidate),
            time_decay=self._time_decay(view.target.message, candidate.message),
            mention_relation=_mention_relation(view, candidate),
            keyword_overlap=_keyword_overlap(view, candidate),
        )

    def _time_decay(self, target: StoredMessage, candidate: StoredMessage) -> float:
        """Return the time decay. The gap counts the same in both directions, since clocks may run backwards."""
        gap = abs((target.at - candidate.at).total_seconds())
        decay: float = 0.5 ** (gap / self._half_life)
        return decay


def as_row(signals: Signals) -> tuple[float, ...]:
    """Return the five values in the order of the table."""
    return (
        signals.reply_chain,
        signals.user_continuity,
        signals.time_decay,
        signals.mention_relation,
        signals.keyword_overlap,
    )


def _reply_chain(view: RoomView, candidate: Entry) -> float:
    """Return the largest value that applies. A path longer than `MAX_HOPS` counts as none. The root itself belongs to
    its thread."""
    hops = view.hops.get(candidate.message.id)
    if hops:
        return float(0.5 ** (hops - 1))
    if view.target.features.addressed and addresses(view.target, candidate):
        return ADDRESSED
    return SAME_ROOT if same_root(view.target.message, candidate.message) else 0.0


def addresses(target: Entry, candidate: Entry) -> bool:
    """Return True if the target begins with the candidate's sender's name and neither message has platform reply
    data."""
    if not target.features.addressed or _has_reply_data(target.message) or _has_reply_data(candidate.message):
        return False
    return not _names_of(candidate.message).isdisjoint(target.features.addressed)


def same_root(message: StoredMessage, other: StoredMessage) -> bool:
    """Return True if the platform puts both into one thread; a thread's root may have its own id, or none, as
    `root_id`."""
    if not message.root_id and not other.root_id:
        return False
    return (message.root_id or message.id) == (other.root_id or other.id)


def _has_reply_data(message: StoredMessage) -> bool:
    return bool(message.reply_to or message.root_id)


def _names_of(message: StoredMessage) -> frozenset[str]:
    """Return the forms in which features may name the sender: the id, or the folded name if nobody had it yet when they
    were written."""
    return _spellings(message.sender_id, message.sender_name)


@lru_cache(maxsize=4096)
def _spellings(sender_id: str, sender_name: str) -> frozenset[str]:
    return frozenset(name for name in (sender_id, fold(sender_id), fold(sender_name)) if name)


def _user_continuity(view: RoomView, candidate: Entry) -> float:
    if candidate.message.sender_id == view.target.message.sender_id:
        return 1.0
    partners = view.target.features.partners
    return 0.5 if partners and not _names_of(candidate.message).isdisjoint(partners) else 0.0


def _mention_relation(view: RoomView, candidate: Entry) -> float:
    """Return the mention relation. A call to everybody mentions nobody in particular."""
    mine, theirs = view.target.features.mentions, candidate.features.mentions
    if theirs and not view.own_names.isdisjoint(theirs):
        return 1.0
    if not mine:
        return 0.0
    if not _names_of(candidate.message).isdisjoint(mine):
        return 1.0
    return 0.0 if set(mine).isdisjoint(theirs) else 0.5


def _keyword_overlap(view: RoomView, candidate: Entry) -> float:
    own, theirs = view.own_rarities, candidate.features.keywords
    if own.keys().isdisjoint(theirs):
        return 0.0
    shared = math.fsum([own[keyword] for keyword in theirs if keyword in own])
    return min(1.0, shared / min(view.own_rarity, view.rarity(theirs)))
