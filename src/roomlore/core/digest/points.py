"""Find what is decided in a span of messages, and what is open: questions without an answer, requests that wait."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache

from roomlore.core import lexicon
from roomlore.core.evolution.offline.cues import Sense, agrees, laughs, sense_of
from roomlore.core.memory.scoring import KINDS, asked_for, held
from roomlore.core.models import Entry, MessageType, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.summary.sentences import unsplit
from roomlore.core.text import asks, fold, greets, keywords, sentences, thanks
from roomlore.core.transcript import spoken_text

_MARKS = " .,;:!?。，；：！？"
_DECISIONS = frozenset(("decision", "change", "cancellation"))
_DECISION_CHARACTERS = 400
_LAST_CHARACTERS = 400
_AFTER, _BEFORE = 10, 8
"""The messages after a question or a decision, and before a decision, that are looked at."""
_CHANGED_WITHIN = 60
"""The messages after a decision of which one may change it."""
_RELATED = 0.35
"""Least probability of sharing a thread at which two messages are about one matter."""
_LEADS = 3
"""The messages that lead to a change."""
_FEW = 3
"""The keywords from which a greeting or an assent says something of its own."""
_MOST_SAY = 2
"""The others who name what somebody names at last, for it to be chosen."""
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
_LABEL = lexicon.pattern("decision_label")
# The same in the languages that are always read: a few words after a label may look like another language.
_USUAL_LABEL = lazy_pattern(lexicon.alternatives("decision_label"))
_CONCLUDES = lexicon.pattern("concludes")
_PROPOSES = lexicon.pattern("proposes")
_UNOPPOSED = lexicon.pattern("unopposed")
_POLLS = lexicon.pattern("polls")
_WISHES = lexicon.pattern("wishes")
_REFUSES = lexicon.pattern("refusal")
_IDLE = lexicon.pattern("idle_question")
_ANSWERS = lexicon.pattern("opens_answer")
_TAKES_UP = lexicon.pattern("takes_up")
_CORRECTS = lexicon.pattern("takes_back")
_REPLACES = lexicon.pattern("replaces")
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
        self._settled: dict[int, bool] = {}
        self._concluding: dict[int, bool] = {}
        self._shares: dict[int, Mapping[int, float]] = {}

    def answers(self, question: Entry) -> tuple[Entry, ...]:
        """Return the later messages of others that likely answer a question, without those that ask something back."""
        arrival = question.message.arrival
        if arrival not in self._answers:
            self._answers[arrival] = tuple(self._answering(question))
        return self._answers[arrival]

    def is_open(self, question: Entry) -> bool:
        """Return True if a question wants an answer and nobody gave one; thanks say that it came another way."""
        folded = fold(spoken_text(question.message))
        idle = bool(_IDLE.search(folded)) or laughs(folded) or _is_labelled(folded)
        return not idle and not self.answers(question) and not self._needs_nothing(question)

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
        arrival = entry.message.arrival
        if arrival not in self._settled:
            self._settled[arrival] = self._settles(entry) and not any(
                self._replaces(later, entry) for later in self._after(entry, _CHANGED_WITHIN)
            )
        return self._settled[arrival]

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
        asked, folded = question.message, fold(question.message.text)
        for later in self._after(question, _AFTER):
            message = later.message
            to_another = later.features.addressed and asked.sender_id not in later.features.addressed
            if message.sender_id == asked.sender_id or message.role is Role.SYSTEM or to_another:
                continue
            share = self.share(question, later)
            is_reply = share == 1.0 and not ends_asking(later)
            if is_reply or (_is_answer(later, folded) and self._evidence(question, later, share) >= _ANSWERED):
                yield later

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

    def _settles(self, entry: Entry) -> bool:
        message = entry.message
        if message.role is not Role.USER or len(message.text) > _DECISION_CHARACTERS:
            return False
        folded = fold(message.text)
        if _is_labelled(folded):
            return True
        related = [one for one in self._after(entry, _AFTER) if self._is_about(entry, one)]
        others = [one for one in related if one.message.sender_id != message.sender_id]
        agreed = len({one.message.sender_id for one in others if agrees(one.message.text)})
        if self._concludes(entry, folded):
            return True
        if entry.features.addressed and _TASK.search(folded):
            return False
        doubtful = _WISHES.search(folded) or _begins_anew(folded) or self._answers_one(entry)
        if _POLLS.search(folded) or (agreed == 0 and doubtful):
            return False
        if _settles_alone(folded, agreed):
            return True
        if not _UNOPPOSED.search(folded) and not (agreed and _PROPOSES.search(folded)):
            return False
        opposed = any(_REFUSES.search(fold(one.message.text)) for one in others)
        return not opposed and not any(self._carries(one) for one in related)

    def _carries(self, entry: Entry) -> bool:
        folded = fold(entry.message.text)
        return _is_labelled(folded) or _settles_alone(folded, 0) or self._concludes(entry, folded)

    def _answers_one(self, entry: Entry) -> bool:
        """Return True if a message answers a question that proposes nothing."""
        return any(
            is_asking(one) and entry in self.answers(one) and not _is_choice(fold(one.message.text))
            for one in self._before(entry)
        )

    def _before(self, entry: Entry) -> Sequence[Entry]:
        place = self._place[entry.message.arrival]
        return self._entries[max(0, place - _BEFORE) : place]

    def _concludes(self, entry: Entry, folded: str) -> bool:
        """Return True if a message draws the conclusion of what others said before."""
        arrival = entry.message.arrival
        if arrival not in self._concluding:
            self._concluding[arrival] = self._draws_conclusion(entry, folded)
        return self._concluding[arrival]

    def _draws_conclusion(self, entry: Entry, folded: str) -> bool:
        before, sender = self._before(entry), entry.message.sender_id
        said = [one for one in before if one is before[-1] or self.share(one, entry) >= _RELATED]
        if all(one.message.sender_id == sender for one in said) or thanks(folded):
            return False
        told = [sentence for sentence in sentences(folded) if not asks(sentence)]
        if any(map(_CONCLUDES.search, told)):
            return True
        return self._takes_up(said, entry, " ".join(told))

    def _takes_up(self, said: Sequence[Entry], entry: Entry, told: str) -> bool:
        """Return True if a message names what others chose, or tells what follows from their answers to its sender."""
        sender = entry.message.sender_id
        own = next((at for at, one in enumerate(said) if one.message.sender_id == sender), len(said))
        repliers = {one.message.sender_id for one in said[own:]} - {sender}
        opening = _TAKES_UP.search(told)
        opens = opening is not None and not agrees(told[opening.end() :]) and not is_asking(said[-1])
        if opens and repliers and (len(repliers) > 1 or is_asking(said[own]) or _is_put_to_all(said[own])):
            return True
        return any(self._is_chosen(one, entry, told, opens) for one in said if is_asking(one))

    def _is_chosen(self, question: Entry, entry: Entry, told: str, opens: bool) -> bool:
        """Return True if a text names what others chose: after an opening, or if who asked or two others say it."""
        asker, arrival, sender = question.message.sender_id, entry.message.arrival, entry.message.sender_id
        if not (_is_choice(fold(question.message.text)) or _kinds(spoken_text(question.message))):
            return False
        answers = [one for one in self.answers(question) if one.message.arrival < arrival]
        words = set(keywords(told))
        same = {one.message.sender_id for one in answers if not words.isdisjoint(keywords(one.message.text))} - {sender}
        if asker == sender and answers:
            return bool(same) or not words.isdisjoint(keywords(question.message.text))
        return len(same) >= (1 if opens else _MOST_SAY)

    def _replaces(self, later: Entry, entry: Entry) -> bool:
        """Return True if a later message settles the same matter in another way."""
        folded = fold(later.message.text)
        changes = sense_of(folded).changes or bool(_REPLACES.search(folded))
        soon = later.message.at - entry.message.at <= _SOON and later.message.sender_id != entry.message.sender_id
        if not changes and not soon:
            return False
        near = self.share(entry, later) >= _RELATED
        if not (near and self._is_same_matter(entry, later)):
            return False
        return self._settles(later) if changes else _is_labelled(folded) or self._concludes(later, folded)

    def _is_same_matter(self, entry: Entry, later: Entry) -> bool:
        """Return True if what was asked before a message, and what was said right before a later one, share words."""
        asked = [one for one in self._before(entry) if is_asking(one) and self.share(one, entry) >= _RELATED]
        leads = [one for one in self._before(later)[-_LEADS:] if one is not entry]
        then = {word for one in (*leads, later) for word in one.features.keywords}
        return any(not then.isdisjoint(one.features.keywords) for one in (entry, *asked[-1:]))


def _settles_alone(folded: str, agreed: int) -> bool:
    sense = sense_of(folded)
    changes = sense.purposes[:1] == ("change",) and not _CORRECTS.match(folded)
    reports = changes and not sense.timed and not agreed
    return _decides(sense) and sense.holds(agreed) and not reports


def _is_choice(folded: str) -> bool:
    """Return True if a text proposes something or names what to choose from."""
    return bool(_PROPOSES.search(folded) or _SIDES.search(folded))


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
