"""The weights of the features of `roomlore.core.far`, as `python -m training.train_far` prints them.

Fitted to questions asked later, to messages that need nothing far, and to the questions of the project;
docs/explanation/asked-later.md reports the results on each set of models fitted without it.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import mul

import numpy as np

from roomlore.core import lexicon
from roomlore.core.attachments import caption_of
from roomlore.core.linking.model import best_size
from roomlore.core.mentions import utterances
from roomlore.core.models import (
    FAR_REASON,
    MAYBE_FAR_REASON,
    Entry,
    Link,
    LinkKind,
    MessageType,
    Role,
    StoredMessage,
    Target,
)
from roomlore.core.patterns import lazy_pattern
from roomlore.core.search.hits import Ints, MessageFacts
from roomlore.core.search.query import rows_of
from roomlore.core.search.ranking import Ranked
from roomlore.core.text import AS_LONG_AS_A_WORD, OTHER_LETTER, head

NEED_WEIGHTS = (
    1.50,  # pause
    1.66,  # started
    1.09,  # question
    1.93,  # fact
    -0.61,  # general
    1.86,  # remembering
    0.98,  # happened
    2.19,  # standing
    2.07,  # told
    2.61,  # particular
    0.15,  # own
    -0.78,  # spoken_to
    2.46,  # mention
    -1.32,  # addressed
    0.93,  # time
    6.07,  # dialogue
    -1.17,  # length
    0.29,  # long
    -2.53,  # code
    -1.42,  # reply
    -5.85,  # constant
)
"""Weights of `NEED`, and a constant."""

EVIDENCE_WEIGHTS = (
    -0.75,  # place
    2.66,  # share
    -0.83,  # answered
    0.38,  # answers
    1.91,  # mate
    0.54,  # length
    -5.06,  # constant
)
"""Weights of `EVIDENCE`, and a constant."""


MIN_NEED = 0.3
"""The least probability at which what search finds is chosen beside the thread; below it, it only fills a context."""
MISSED, SURENESS = 150.0, 4
"""A missed message counts `1 + MISSED * P(needed)**SURENESS` times as much as a superfluous one."""
MOST_HITS = 40
_TURNS = 20
_AFTER = np.arange(1, 9)
"""The distances of the later messages that are searched for an answer."""
_BEGIN, _END = 1_000, 500
"""Characters read at the beginning and at the end of a long message."""
_DAY = 1_440.0

# Possessive or of bounded length, so that matching stays linear.
_REMEMBERING = lexicon.pattern("remembering")
_HAPPENED = lexicon.pattern("happened")
_STANDING = lexicon.pattern("standing")
_FACT = lexicon.pattern("fact_asked")
_TOLD = lexicon.pattern("told_to_tell")
_GENERAL = lexicon.pattern("general_question")
_OWN = lexicon.pattern("own")
_SPOKEN_TO = lexicon.pattern("spoken_to")
# A capital letter inside a sentence, which may begin a name; I is none.
_PROPER = lazy_pattern(r"(?<=[a-z,'’] )(?!I\b)[A-Z][a-z]")
_TIME = lexicon.pattern("time_named")
# Code, an address or a path.
_CODE = lazy_pattern(r"```|https?://|[{};]\s?\n|\w\(\)|</|==|\w\.\w{1,40}\(|[/\\]\w{1,40}[/\\]|`[^`\n]{1,80}`")
# A word, or as much of a script without spaces.
_WORD = lazy_pattern(rf"(?:[a-z0-9']++|{OTHER_LETTER})+|{AS_LONG_AS_A_WORD}")
# The name of who is addressed, at the beginning.
_ADDRESS = lazy_pattern(r"\s*(?:@[^\s,:，：]{1,64}[\s,:，：]*|[^\s@,:，：]{1,64}[:,，：]\s*)")

NEED = (
    "pause",
    "started",
    "question",
    "fact",
    "general",
    "remembering",
    "happened",
    "standing",
    "told",
    "particular",
    "own",
    "spoken_to",
    "mention",
    "addressed",
    "time",
    "dialogue",
    "length",
    "long",
    "code",
    "reply",
)
"""The features of `need`, in order; see `signs`."""
_WEIGHT = dict(zip(NEED, NEED_WEIGHTS, strict=False))
_ALL_SAID = NEED_WEIGHTS[-1] + sum(
    max(0.0, _WEIGHT[name]) for name in ("general", "standing", "own", "spoken_to", "time", "code")
)
"""The constant for a message that asks nothing, if its text had all that makes a need likelier."""
EVIDENCE = ("place", "share", "answered", "answers", "mate", "length")
"""The features of `weigh`, in order; see `evidence_signs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The search results among the messages before one: `ranked`, best first, and the `facts` of those messages.

    `problem`: None, or the reason for an incomplete search.
    """

    ranked: tuple[Ranked, ...]
    facts: MessageFacts
    problem: str | None = None


def query_of(entry: Entry) -> str:
    """Return the text to search for: the message or its caption, without the people it addresses at its beginning."""
    text = _words_of(entry.message)
    address = _ADDRESS.match(text) if entry.features.addressed else None
    return text[address.end() :] if address else text


def need(target: Target) -> float:
    """Return P(the message needs something said long ago), in [0, 1]; 0 if no person said it."""
    if target.entry.message.role is not Role.USER or not target.window_messages:
        return 0.0
    return _chance(NEED_WEIGHTS, signs(target))


def asks(entry: Entry) -> bool:
    """Return True if the message asks something."""
    return entry.features.message_type is MessageType.QUESTION or bool(_TOLD.search(head(_words_of(entry.message))))


def is_placed(entry: Entry) -> bool:
    """Return True if a platform says to what the message belongs."""
    return entry.link.kind is LinkKind.PLATFORM or entry.message.root_id is not None


def may_need(target: Target) -> bool:
    """Return False if `need` of a message that asks nothing is surely below `MIN_NEED`. Most of its text is not read
    for that: it counts as if it had whatever makes a need likelier."""
    entry = target.entry
    text = head(_words_of(entry.message))
    if len(text) > _BEGIN:
        return True
    known = {
        "pause": _pause(target),
        "started": _started(entry),
        "mention": float(_names_others(entry)),
        "addressed": float(bool(entry.features.addressed)),
        "dialogue": float(len(text.splitlines()) > 1),
        "long": _longness(len(text)),
        "reply": float(entry.message.reply_to is not None),
    }
    return _chance((*map(_WEIGHT.__getitem__, known), _ALL_SAID), list(known.values())) >= MIN_NEED


def signs(target: Target) -> list[float]:
    """Return the values of `NEED`, each about in [0, 1]."""
    entry, whole = target.entry, _words_of(target.entry.message)
    text = whole if len(whole) <= _BEGIN + _END else f"{whole[:_BEGIN]}\n{whole[-_END:]}"
    folded, features = head(text), entry.features
    length = len(_WORD.findall(folded))
    question = features.message_type is MessageType.QUESTION
    is_telling, general, own, standing = (bool(sign.search(folded)) for sign in (_TOLD, _GENERAL, _OWN, _STANDING))
    asks = question or is_telling
    fact = asks and bool(_FACT.search(folded))
    others = _names_others(entry)
    named = others or bool(_PROPER.search(text))
    return [
        _pause(target),
        _started(entry),
        float(question),
        float(fact),
        float(general),
        float(asks and bool(_REMEMBERING.search(folded))),
        float(asks and bool(_HAPPENED.search(folded))),
        float(standing),
        float(is_telling),
        float(((question and (fact or named)) or is_telling) and not general and (own or named or standing)),
        float(own),
        float(bool(_SPOKEN_TO.search(folded))),
        float(others),
        float(bool(features.addressed)),
        float(bool(_TIME.search(folded))),
        float(bool(utterances(text))),
        math.log1p(min(length, 300)) / 5,
        _longness(length),
        float(bool(_CODE.search(text))),
        float(entry.message.reply_to is not None),
    ]


def _pause(target: Target) -> float:
    """Return how long nothing was said before: 1 for a day or more."""
    if target.previous_at is None:
        return 1.0
    minutes = (target.entry.message.dated_at - target.previous_at).total_seconds() / 60
    return math.sqrt(min(max(0.0, minutes), _DAY) / _DAY)


def _started(entry: Entry) -> float:
    return 0.0 if entry.link.kind is LinkKind.PLATFORM else entry.link.new_probability


def _names_others(entry: Entry) -> bool:
    return any(person not in entry.features.addressed for person in entry.features.mentions)


def _longness(words: int) -> float:
    return max(0.0, math.log((words + 1) / 40))


def _words_of(message: StoredMessage) -> str:
    return message.text if message.text.strip() else caption_of(message) or message.text


def _chance(weights: Sequence[float], values: Sequence[float]) -> float:
    """Return the probability of a logistic model; the last weight is its constant."""
    sum_ = math.fsum(map(mul, weights, values)) + weights[-1]
    return 1 / (1 + math.exp(-sum_))


@dataclass(frozen=True, slots=True)
class Past:
    """The probabilities for a message that may need something said long ago.

    `needed`: the probability that it does, 0 if no search was made. `chances`: arrival to probability, of the thread's
    messages, the hits, and the messages that the best hits answer or are answered by. `reasons`: of those that may hold
    what is needed, likeliest first. `told`: the platform states what the message answers.
    """

    needed: float = 0.0
    chances: Mapping[int, float] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    told: bool = False

    @property
    def answers(self) -> dict[int, float]:
        """Return arrival to probability of the messages that `reasons` has, in its order."""
        return {arrival: self.chances[arrival] for arrival in self.reasons}

    def without(self, arrivals: Collection[int]) -> "Past":
        """Return the probabilities as if these messages were not there."""
        return replace(
            self,
            chances={arrival: chance for arrival, chance in self.chances.items() if arrival not in arrivals},
            reasons={arrival: reason for arrival, reason in self.reasons.items() if arrival not in arrivals},
        )

    def choose(self, max_messages: int) -> dict[int, float]:
        """Return arrival to probability of the messages to show, likeliest first: at most `max_messages`, with the
        highest expected F-beta.

        Beta grows with the certainty that something far is needed, since a missed answer then costs more than a
        superfluous message. If the platform states what the message answers, most of the needed messages are present
        anyway.
        """
        squared = 1.0 if self.told else 1 + MISSED * self.needed**SURENESS
        likeliest = sorted(self.chances.items(), key=lambda chance: (-chance[1], -chance[0]))
        size = best_size([chance for _, chance in likeliest], max_messages, squared)
        return dict(likeliest[:size])


NOTHING_FAR = Past()


def weigh(link: Link, earlier: Earlier, needed: float, *, hits_alone: bool = False) -> Past:
    """Return the probability of each message: from its thread, if nothing far is needed, or else as an answer.

    A thread that is certain counts in either case. `hits_alone`: leave out the messages that were not found.
    """
    threaded, chances, reasons = link.thread_candidates.by_arrival(), {}, {}
    is_certain, likely = link.has_certain_thread, needed >= MIN_NEED
    signs = evidence_signs(link, earlier, hits_alone=hits_alone)
    evidence = {arrival: _chance(EVIDENCE_WEIGHTS, values) for arrival, values in signs.items()}
    for arrival in sorted(evidence, key=lambda candidate: -evidence[candidate]):
        answering, mate = needed * evidence[arrival], threaded.get(arrival, 0.0)
        talking = mate if is_certain else (1 - needed) * mate
        chances[arrival] = mate + (1 - mate) * answering if is_certain else answering + talking
        _, share, answered, answers, *_ = signs[arrival]
        if not likely and share:
            reasons[arrival] = MAYBE_FAR_REASON
        elif likely and answering >= talking and (share or answered or answers):
            reasons[arrival] = _FOUND if share else _REASONS[answered > 0, answers > 0]
    return Past(needed, chances, reasons, is_certain)


_FOUND = FAR_REASON
_REASONS = {
    (True, False): f"{_FOUND} (a message found replies to it)",
    (False, True): f"{_FOUND} (it replies to a message found)",
    (True, True): f"{_FOUND} (it stands between messages found)",
}


def evidence_signs(link: Link, earlier: Earlier, *, hits_alone: bool = False) -> dict[int, list[float]]:
    """Return the values of `EVIDENCE` by arrival.

    `place`: log of the rank among the hits. `share`: share of the best score, 0 if it is no hit. `answered`, `answers`:
    probability that a better hit answers it, or that it answers a better hit, divided by that hit's rank. `mate`:
    probability of the same thread. `length`: log of its words.
    """
    ranked, facts, threaded = earlier.ranked, earlier.facts, link.thread_candidates.by_arrival()
    best = ranked[0].score if ranked else 1.0
    last_place = len(ranked) + 1
    rows = rows_of(facts, np.array([hit.arrival for hit in ranked], np.int64))
    shares = {hit.arrival: hit.score / best for hit in ranked}
    by_arrival = {hit.arrival: [math.log(place), shares[hit.arrival], 0.0, 0.0] for place, hit in enumerate(ranked, 1)}
    places = {hit.arrival: place for place, hit in enumerate(ranked, 1)}
    for hit, beside, column, odds in (_turns_among if hits_alone else _turns)(facts, rows[:_TURNS]):
        if places[hit] < places.get(beside, last_place):
            values = by_arrival.setdefault(beside, [math.log(last_place), 0.0, 0.0, 0.0])
            values[column] = max(values[column], odds / places[hit])
    if not hits_alone:
        for mate in threaded:
            by_arrival.setdefault(mate, [math.log(last_place), 0.0, 0.0, 0.0])
        rows = rows_of(facts, np.fromiter(by_arrival, np.int64, len(by_arrival)))
    lengths = np.log1p(np.where(rows >= 0, facts.lengths[rows], 0)) if facts.arrivals.size else rows
    return {
        arrival: [*values, threaded.get(arrival, 0.0), length]
        for (arrival, values), length in zip(by_arrival.items(), lengths.tolist(), strict=True)
    }


def _turns(facts: MessageFacts, rows: Ints) -> list[tuple[int, int, int, float]]:
    """Return the links of the hits in these rows: (arrival of the hit, arrival of the linked message, the feature of
    the link, its probability)."""
    parents = facts.parents[rows]
    after = rows[:, None] + _AFTER
    children = np.minimum(after, facts.arrivals.size - 1)
    answering = (after < facts.arrivals.size) & (facts.parents[children] == facts.arrivals[rows][:, None])
    hits, odds = facts.arrivals[rows].tolist(), facts.parent_odds[rows].tolist()
    known = (rows_of(facts, parents) >= 0).tolist()
    turns = []
    for place, parent in enumerate(parents.tolist()):
        if known[place]:
            turns.append((hits[place], parent, 2, odds[place]))
        after_it = children[place][answering[place]]
        arrivals, chances = facts.arrivals[after_it].tolist(), facts.parent_odds[after_it].tolist()
        turns += [(hits[place], child, 3, chance) for child, chance in zip(arrivals, chances, strict=True)]
    return turns


def _turns_among(facts: MessageFacts, rows: Ints) -> list[tuple[int, int, int, float]]:
    """Return those of `_turns` whose two messages are in these rows."""
    arrivals, parents, odds = (column[rows].tolist() for column in (facts.arrivals, facts.parents, facts.parent_odds))
    row_of = dict(zip(arrivals, rows.tolist(), strict=True))
    turns = []
    for arrival, parent, chance in zip(arrivals, parents, odds, strict=True):
        if parent in row_of:
            turns.append((arrival, parent, 2, chance))
            if 0 < row_of[arrival] - row_of[parent] <= _AFTER.size:
                turns.append((parent, arrival, 3, chance))
    return turns
