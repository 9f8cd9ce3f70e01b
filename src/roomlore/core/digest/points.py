"""Find what is decided in a span of messages, and what is open: questions without an answer, requests that wait."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property, lru_cache

import numpy as np

from roomlore.core import lexicon
from roomlore.core.digest import signs
from roomlore.core.digest.signs import Floats
from roomlore.core.evolution.offline.cues import Sense, agrees, laughs, sense_of
from roomlore.core.evolution.offline.nets import net
from roomlore.core.memory.scoring import KINDS, asked_for, held
from roomlore.core.models import Entry, MessageType, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.summary.sentences import unsplit
from roomlore.core.text import asks, fold, greets, keywords, sentences, thanks
from roomlore.core.transcript import spoken_text

_MARKS = " .,;:!?。，；：！？"
_DECISIONS = frozenset(("decision", "change", "cancellation"))
_DECISION_CHARACTERS = 400
_DECIDES, _PLAIN, _ASKING = -0.6, -3.0, 0.6
"""The log-odds from which a message decides, so that what is found matters as much as that it is right; from which one
does that says "decided", and one that asks."""
_OPEN = -0.4
"""The log-odds from which a question is open."""
_LABELLED, _UNNEEDED = signs.EVIDENCE.index("label"), signs.EVIDENCE.index("needs nothing")
_LAST_CHARACTERS = 400
_AFTER, _BEFORE = 10, 8
"""The messages after a question or a decision, and before a decision, that are looked at."""
_RELATED = 0.35
"""Least probability of sharing a thread at which two messages are about one matter."""
_FEW = 3
"""The keywords from which a greeting or an assent says something of its own."""
_LEAST = 0.2
"""The probability of sharing a thread up to which a message answers no question."""
_KEPT = 1 << 12
"""The texts of which it is kept what they say."""
_SOON = timedelta(minutes=20)
_ANSWERED = 0.55
"""The least evidence at which a message answers a question: the probability of sharing a thread, and these weights."""
_NEXT, _OPENS, _HOLDS, _SHARES, _THANKED = 0.15, 0.3, 0.2, 0.1, 0.25
_LACKS, _NO_SIDE, _LATER = -0.35, -0.35, -0.2
_TOLD = ("number", "time", "clock", "age", "money", "measure", "contact")
"""The kinds of things that show in any answer to a question for them."""

# The words before the name of who is spoken to.
_OPENING = lazy_pattern(rf"\A(?:{lexicon.alternatives('opening')})")
# A line of a stack trace.
_TRACE = lazy_pattern(r"(?m)^[ \t]*(?:at [\w.$]+\(|File \"|Traceback \()")
_DECIDED = lexicon.pattern("decided")
_NEGATION = lexicon.pattern("negation")
_LABEL = lexicon.pattern("decision_label")
# The same in the languages that are always read: a few words after a label may look like another language.
_USUAL_LABEL = lazy_pattern(lexicon.alternatives("decision_label"))
_UNOPPOSED = lexicon.pattern("unopposed")
_POLLS = lexicon.pattern("polls")
_IDLE = lexicon.pattern("idle_question")
_ANSWERS = lexicon.pattern("opens_answer")
_ASKS = lexicon.pattern("asks_plainly")
_NEW_TOPIC = lexicon.pattern("new_topic")
_FAREWELL = lexicon.pattern("farewell")
_INVITES = lexicon.pattern("invites")
_EVADES = lexicon.pattern("evades")
_TAKES_BACK = lexicon.pattern("needs_no_answer")
_SIDES = lexicon.pattern("alternatives")
_TASK = lexicon.pattern("task")
_PROMISES = lexicon.pattern("promises")
_DONE = lexicon.pattern("fulfils")


def is_asking(entry: Entry) -> bool:
    """Return True if a person asks something."""
    if entry.message.role is not Role.USER:
        return False
    return entry.features.message_type is MessageType.QUESTION or _asks(spoken_text(entry.message)[-_LAST_CHARACTERS:])


def ends_asking(entry: Entry) -> bool:
    """Return True if the last sentence of a question asks: 'The printer? Call Jim' is an answer."""
    text = spoken_text(entry.message)[-_LAST_CHARACTERS:]
    last = next((sentence for sentence in reversed(unsplit(text)) if sentence.strip()), "")
    return is_asking(entry) and _asks(last)


@lru_cache(maxsize=_KEPT)
def _asks(text: str) -> bool:
    folded = fold(text)
    return asks(folded) or bool(_ASKS.search(folded))


def speaks_of_decision(text: str) -> bool:
    """Return True if a text says above all that something is decided, changed or cancelled. If it holds is not
    considered."""
    folded = fold(text)
    return _is_labelled(folded) or _decides(sense_of(folded))


def _is_labelled(folded: str) -> bool:
    """Return True if a message begins with a label that says that it is a decision, and what the label names does not
    ask. A request may follow."""
    return bool(_LABEL.match(folded) or _USUAL_LABEL.match(folded)) and not asks(sentences(folded)[0])


def _decides(sense: Sense) -> bool:
    return bool(sense.purposes) and sense.purposes[0] in _DECISIONS and not sense.asked


def says_little(text: str) -> bool:
    """Return True if a text greets, says goodbye, agrees or laughs, and no more."""
    folded = fold(text)
    return (greets(folded) or bool(_FAREWELL.search(folded)) or agrees(text) or laughs(text)) and len(
        keywords(text)
    ) < _FEW


def concerns(entry: Entry, person: str, own: Collection[str]) -> bool:
    """Return True if a message names a person, answers one of their messages, whose ids are `own`, or speaks to
    everybody."""
    features = entry.features
    return _answers(entry, person, own) or person in features.mentions or person in features.addressed


def _answers(entry: Entry, person: str, own: Collection[str]) -> bool:
    reply = entry.features.reply
    return (
        entry.message.reply_to in own
        or entry.features.mentions_all
        or (reply is not None and reply.kind != "mention" and reply.sender_id == person)
    )


class Span:
    """Messages in order of arrival, and how they answer and settle each other. What is asked of it is kept."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._place = {entry.message.arrival: place for place, entry in enumerate(entries)}
        self._names: dict[str, set[str]] = {}
        for entry in entries:
            names = {fold(entry.message.sender_name or entry.message.sender_id)}
            self._names.setdefault(entry.message.sender_id, set()).update(names)
        self._answers: dict[int, tuple[Entry, ...]] = {}
        self._weights: dict[int, Sequence[tuple[Entry, float | None]]] = {}
        self._said: dict[int, Floats] = {}
        self._signs: dict[int, Floats] = {}
        self._shares: dict[int, Mapping[int, float]] = {}

    def answers(self, question: Entry) -> tuple[Entry, ...]:
        """Return the later messages of others that likely answer a question, without those that ask something back."""
        arrival = question.message.arrival
        if arrival not in self._answers:
            self._answers[arrival] = tuple(self._answering(question))
        return self._answers[arrival]

    def is_open(self, question: Entry) -> bool:
        """Return True if a question likely wants an answer and nobody gave one."""
        evidence = self.open_signs(question)
        if evidence[_LABELLED] or evidence[_UNNEEDED]:
            return False
        return float(net("open").scores(evidence)[0]) >= _OPEN

    def open_signs(self, question: Entry) -> Floats:
        """Return the signs that a question is open: those of `signs`, and once more as far as the room is busy."""
        own = self.signs(question)
        return np.concatenate([own, own * self._busy])

    @cached_property
    def _busy(self) -> float:
        return signs.busy(self._entries)

    def _looks_open(self, question: Entry) -> bool:
        """Return True if a question wants an answer and no message looks like one."""
        folded = fold(spoken_text(question.message))
        idle = bool(_IDLE.search(folded)) or laughs(folded) or _is_labelled(folded)
        return not idle and not self.answers(question)

    def waits_for(self, entry: Entry, person: str) -> bool:
        """Return True if a message that is put to a person asks something of them that nobody answered or did. Who
        promises to do something has not done it."""
        folded = fold(spoken_text(entry.message))
        asking, task = is_asking(entry) and ends_asking(entry), bool(_TASK.search(folded))
        if not asking and (not task or thanks(folded)):
            return False
        if _IDLE.search(folded) or self._needs_nothing(entry):
            return False
        if asking and any(answer.message.sender_id != person for answer in self.answers(entry)):
            return False
        if not task:
            return not self.answers(entry)
        after = self._after(entry, len(self._entries))
        own = [later for later in after if later.message.sender_id == person and self._is_about(entry, later)]
        return all(_only_promises(fold(later.message.text)) for later in own)

    def asks_of(self, entry: Entry, person: str, own: Collection[str]) -> bool:
        """Return True if a message asks something of a person that nobody answered or did. `own`: the ids of the
        person's messages."""
        if entry.message.sender_id == person or not concerns(entry, person, own):
            return False
        return (_answers(entry, person, own) or self.is_put_to(entry, person)) and self.waits_for(entry, person)

    def is_put_to(self, entry: Entry, person: str) -> bool:
        """Return True if a message speaks to a person: it mentions them with a sign, or their name begins or ends one
        of its sentences."""
        features, text = entry.features, fold(spoken_text(entry.message))
        if person in features.addressed or person in entry.message.mentions or "@" in text:
            return True
        names = self._names.get(person, {fold(person)}) if person in features.mentions else ()
        parts = [_OPENING.sub("", part, 1).strip(_MARKS) for part in sentences(text)] if names else []
        return any(part.startswith(name) or part.endswith(name) for part in parts for name in names)

    def decides(self, entry: Entry) -> bool:
        """Return True if a message settles something that no later message changes."""
        text = entry.message.text
        if entry.message.role is not Role.USER or len(text) > _DECISION_CHARACTERS or _TRACE.search(text):
            return False
        folded = fold(text)
        if _is_labelled(folded) or says_little(text):
            return _is_labelled(folded)
        plain = bool(_DECIDED.search(folded) and not _NEGATION.search(folded)) and _decides(sense_of(folded))
        least = _ASKING if ends_asking(entry) else _PLAIN if plain else _DECIDES
        return float(net("decides").scores(self.signs(entry))[0]) >= least

    def signs(self, entry: Entry) -> Floats:
        """Return the signs that a message decides, in the order of `signs.EVIDENCE`."""
        arrival = entry.message.arrival
        if arrival not in self._signs:
            folded, asking = fold(spoken_text(entry.message)), is_asking(entry)
            unneeded = asking and self._needs_nothing(entry)
            open_ = asking and not unneeded and self._looks_open(entry)
            weighed = self._weighed(entry) if asking else ()
            evidence = max((weight for _, weight in weighed if weight is not None), default=0.0)
            replies = any(
                one.message.reply_to == entry.message.id and self._speaks_to(entry, one)
                for one in self._after(entry, _AFTER)
            )
            before = self._before(entry)
            self._signs[arrival] = signs.evidence(
                self._says,
                self._entries,
                self._place[arrival],
                related=[one for one in self._after(entry, _AFTER) if self._is_about(entry, one)],
                leading=[one for one in before if one is before[-1] or self.share(one, entry) >= _RELATED],
                rules=(
                    _is_labelled(folded),
                    open_,
                    unneeded,
                    evidence,
                    len(self.answers(entry)) / _AFTER if asking else 0.0,
                    replies,
                ),
            )
        return self._signs[arrival]

    def _says(self, entry: Entry) -> Floats:
        arrival = entry.message.arrival
        if arrival not in self._said:
            self._said[arrival] = signs.says(entry, asks=is_asking(entry), asks_last=ends_asking(entry))
        return self._said[arrival]

    def share(self, entry: Entry, later: Entry) -> float:
        """Return the probability that a later message is in one thread with this one."""
        if later.message.reply_to == entry.message.id:
            return 1.0
        arrival = later.message.arrival
        if arrival not in self._shares:
            self._shares[arrival] = later.link.thread_candidates.by_arrival()
        return self._shares[arrival].get(entry.message.arrival, 0.0)

    def _after(self, entry: Entry, most: int) -> Sequence[Entry]:
        place = self._place[entry.message.arrival]
        return self._entries[place + 1 : place + 1 + most]

    def _is_about(self, entry: Entry, later: Entry) -> bool:
        return self.share(entry, later) >= _RELATED or self._is_next(entry, later)

    def _is_next(self, entry: Entry, later: Entry) -> bool:
        """Return True if it is the next message of somebody else, soon after."""
        others = (one for one in self._after(entry, _AFTER) if one.message.sender_id != entry.message.sender_id)
        return next(others, None) is later and later.message.at - entry.message.at <= _SOON

    def _answering(self, question: Entry) -> Iterator[Entry]:
        for later, weight in self._weighed(question):
            is_reply = self.share(question, later) == 1.0 and not ends_asking(later)
            if is_reply or (weight is not None and weight >= _ANSWERED):
                yield later

    def _weighed(self, question: Entry) -> Sequence[tuple[Entry, float | None]]:
        """Return the later messages that speak to who asks, with the evidence that each answers; None for one that asks
        back or begins something else."""
        arrival = question.message.arrival
        if arrival not in self._weights:
            folded = fold(question.message.text)
            self._weights[arrival] = [
                (
                    later,
                    self._evidence(question, later, self.share(question, later)) if _is_answer(later, folded) else None,
                )
                for later in self._after(question, _AFTER)
                if self._speaks_to(question, later)
            ]
        return self._weights[arrival]

    def _speaks_to(self, question: Entry, later: Entry) -> bool:
        """Return True if a later message is of somebody else, and not to somebody else."""
        asker, message = question.message.sender_id, later.message
        to_another = later.features.addressed and asker not in later.features.addressed
        return message.sender_id != asker and message.role is not Role.SYSTEM and not to_another

    def _evidence(self, question: Entry, later: Entry, share: float) -> float:
        is_next = self._is_next(question, later)
        if share <= _LEAST or self._is_anothers(question, later, share):
            return 0.0
        asked, text = spoken_text(question.message), spoken_text(later.message)
        kinds, folded = _kinds(asked), fold(text)
        opens = bool(_EVADES.search(folded)) or (not kinds and _opens_answer(folded, asked))
        shares = not set(keywords(asked)).isdisjoint(keywords(text))
        holds = not kinds.isdisjoint(_held(text)) and (is_next or len(keywords(text)) <= _FEW)
        thanked, late = self._is_thanked(question, later), later.message.at - question.message.at > _SOON
        if late and not (opens or shares or holds or thanked):
            return 0.0
        evidence = share + _NEXT * is_next + _OPENS * opens + _HOLDS * holds + _SHARES * shares + _THANKED * thanked
        evidence += _LACKS * bool(kinds and not holds and not opens)
        evidence += _NO_SIDE * bool(_SIDES.search(fold(asked)) and not shares and not opens)
        return evidence + _LATER * late

    def _is_anothers(self, question: Entry, later: Entry, share: float) -> bool:
        """Return True if the message at least as likely belongs to what somebody asked meanwhile."""
        between = self._after(question, self._place[later.message.arrival] - self._place[question.message.arrival] - 1)
        return any(self.share(one, later) >= share for one in between if _wants_reply(one))

    def _is_thanked(self, question: Entry, later: Entry) -> bool:
        """Return True if who asks thanks right after the message."""
        asker = question.message.sender_id
        return any(one.message.sender_id == asker and thanks(fold(one.message.text)) for one in self._after(later, 2))

    def _needs_nothing(self, question: Entry) -> bool:
        """Return True if who asks says later that it is found or no longer needed, or thanks."""
        for later in self._after(question, 2 * _AFTER):
            if later.message.sender_id != question.message.sender_id:
                continue
            folded = fold(later.message.text)
            if _TAKES_BACK.search(folded) or (thanks(folded) and self.share(question, later) >= _RELATED):
                return True
            if is_asking(later):
                return False
        return False

    def _before(self, entry: Entry) -> Sequence[Entry]:
        place = self._place[entry.message.arrival]
        return self._entries[max(0, place - _BEFORE) : place]


def _opens_answer(folded: str, asked: str) -> bool:
    """Return True if a text begins as an answer. A bare yes answers no question for a person or a place."""
    return bool(_ANSWERS.match(folded)) if any(asked_for(asked)) else bool(_ANSWERS.match(folded) or agrees(folded))


def _is_answer(later: Entry, asked: str) -> bool:
    """Return True if a message may answer a folded question, and does not ask back or begin something else."""
    folded = fold(later.message.text)
    if _begins_anew(folded) or _is_put_to_all(later):
        return False
    return not ends_asking(later) or bool(_INVITES.search(asked))


def _begins_anew(folded: str) -> bool:
    return bool(_NEW_TOPIC.search(folded) or _FAREWELL.search(folded))


def _wants_reply(entry: Entry) -> bool:
    return bool(entry.features.addressed) or is_asking(entry) or _is_put_to_all(entry)


def _is_put_to_all(entry: Entry) -> bool:
    folded = fold(entry.message.text)
    return bool(_UNOPPOSED.search(folded) or _POLLS.search(folded))


def _only_promises(folded: str) -> bool:
    """Return True if a message says that something will be done, not that it is."""
    return bool(_PROMISES.search(folded)) and not _DONE.search(folded)


@lru_cache(maxsize=_KEPT)
def _kinds(question: str) -> frozenset[int]:
    return frozenset(place for place, flag in enumerate(asked_for(question)) if flag and KINDS[place] in _TOLD)


@lru_cache(maxsize=_KEPT)
def _held(text: str) -> frozenset[int]:
    return frozenset(place for place, flag in enumerate(held([text])[0]) if flag)
