"""Find what a group settled: the messages that say so, who agreed, and what later messages changed."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property, lru_cache, partial
from itertools import pairwise

from roomlore.core.evolution.guards import is_order
from roomlore.core.evolution.offline import holding
from roomlore.core.evolution.offline.cues import (
    Purpose,
    Sense,
    acknowledges,
    agrees,
    laughs,
    sense_of,
    times_in,
)
from roomlore.core.evolution.offline.days import future_days, last_named_day
from roomlore.core.evolution.offline.reading import WEEKDAY, Line, TermWeights, Wording, keys_of
from roomlore.core.evolution.offline.statements import StatementParts, parse_statement, written
from roomlore.core.evolution.offline.succession import (
    LEAST,
    READ,
    Circumstances,
    Statement,
    beginning,
    corrects,
    evidence,
    likelihoods,
    opposes,
    subject_words,
)
from roomlore.core.evolution.requests import Operation
from roomlore.core.memory.memory import Memory
from roomlore.core.safety import is_safety
from roomlore.core.text import asks, fold, language, thanks
from roomlore.core.values import CLAUSE_END, GONE, Value, cut_out

MAX_FOUND = 8
_MAX_KNOWN = 26
"""The number of memories from which nothing more is created; what changes is still updated."""
_ANSWERS = 6
"""The messages after one among which its answers are looked for."""
_ANSWERED_WITHIN = timedelta(hours=12)
_GOES_ON = timedelta(minutes=5)
_ASKED_BEFORE, _ASKED_WITHIN = 4, timedelta(hours=2)
"""The messages, and the time, before one in which what it goes on from is looked for."""
_QUESTION, _COMMON, _VALUED = 2.5, 2.0, 1.0
"""What speaks for one of them: a question of another, common words, a value; a message nearer counts as 1."""
_SAID, _LIKE = 0.6, 0.5
_FEWEST_SHARED = 2
_BETTER = 0.1
"""By how much likelier something new must be than what it takes the place of when there is no room."""
_MOST_OLD = 60
"""The settled things that a message may replace: the last ones."""
_AGAINST_RULES = 0.6
"""How likely it must be that a message holds if the rules speak against it."""
_ROTA = 2
_LONG_AGO = 100
_FEWEST_CLAUSES, _MOSTLY = 2, 0.7
_FEW_WORDS_OF_ANSWER, _SHORT = 8, 24
"""An answer with fewer subject words, and a short message without one, goes on from what was said before it."""


@dataclass(eq=False)
class Settled:
    """Something that holds, as one message says it. `line`: the message; None for a memory of another maker. `handle`:
    of the memory that holds it, '' if none does. `likely`: how likely it is that it holds. `about`: what the message
    goes on from, or what is left of what it changed."""

    text: str
    line: Line | None
    sense: Sense
    handle: str = ""
    about: str = ""
    agreed: tuple[Line, ...] = ()
    again: list[Line] = field(default_factory=list)
    likely: float = 1.0
    over: bool = False
    changed: bool = False

    @property
    def words(self) -> frozenset[str]:
        """The words that name what it is about."""
        return self.statement.words

    @cached_property
    def wording(self) -> Wording:
        return Wording.of(self.text)

    @cached_property
    def statement(self) -> Statement:
        return Statement(self.text[:READ], self.about, self.sense.purposes)

    @property
    def evidence(self) -> tuple[Line, ...]:
        return (*((self.line,) if self.line else ()), *self.agreed, *self.again)

    @property
    def is_cancelling(self) -> bool:
        return "cancellation" in self.sense.purposes[:1]

    @property
    def is_fresh(self) -> bool:
        return bool(self.line and self.line.fresh) or any(settled.fresh for settled in (*self.agreed, *self.again))

    def compare_anew(self) -> None:
        """Forget the statement, after what it is made of changed."""
        self.__dict__.pop("statement", None)


class Finder:
    """Builds the operations of a reading. `deleted`: statements not to be made again."""

    def __init__(self, lines: Sequence[Line], memories: Mapping[str, Memory], *, deleted: Sequence[str]) -> None:
        self._lines = lines
        self._places = {line.message_id: at for at, line in enumerate(lines)}
        self._known = {handle: parse_statement(memory.statement) for handle, memory in memories.items()}
        self._statements = {handle: memory.statement for handle, memory in memories.items()}
        self._deleted = [Wording.of(parse_statement(statement).said) for statement in deleted]
        self._weights = TermWeights(Wording.of(line.text) for line in lines)
        self._told = lru_cache(maxsize=None)(lambda at: Statement(lines[at].text[:READ]))
        self._agreement = lru_cache(maxsize=None)(partial(_agreement, lines))
        self._subjects = _rarities(lines, [self._told(at).characters for at in range(len(lines))])
        names = {name for name in (fold(line.name) for line in lines) if len(name) > 1}
        self._named = lru_cache(maxsize=None)(lambda folded: frozenset(name for name in names if name in folded))
        self._settled = [
            Settled(parts.said, None, sense_of(fold(parts.said)), handle, parts.about)
            for handle, parts in self._known.items()
        ]

    def operations(self) -> Iterator[Operation]:
        for at in range(len(self._lines)):
            self.read(at)
        settled_now = [settled for settled in self._settled if not settled.over and settled.is_fresh]
        new = sorted(
            (settled for settled in settled_now if not (settled.handle or self._is_past(settled))),
            key=lambda ranked: -ranked.likely,
        )[:MAX_FOUND]
        room = max(_MAX_KNOWN - len(self._known), 0)
        given_up = list(zip(self._weakest(len(new) - room), new[room:], strict=False))
        given_up = [(old, better) for old, better in given_up if old.likely + _BETTER <= better.likely]
        kept = {id(settled) for settled in (*new[:room], *(better for _, better in given_up))}
        number = 0
        for settled in settled_now:
            if settled.handle or id(settled) in kept:
                number += 1
                yield self._operation(number, settled)
        for old, better in given_up:
            number += 1
            yield _deletion(number, old, better)

    def _is_past(self, settled: Settled) -> bool:
        """Return True if it was over before the last message."""
        end = _end(settled)
        return end is not None and end < self._lines[-1].on

    def _weakest(self, count: int) -> list[Settled]:
        """Return the known memories that are the least worth keeping, the least first: never one about safety, one of
        another maker or one that is spoken of now."""
        weak = [
            settled
            for settled in self._settled
            if settled.handle
            and settled.line
            and not (settled.over or settled.is_fresh or settled.changed or is_safety(settled.text))
        ]
        return sorted(weak, key=lambda known: known.likely)[: max(count, 0)]

    def _operation(self, number: int, settled: Settled) -> Operation:
        evidence = tuple(dict.fromkeys(line.handle for line in settled.evidence if line.fresh or not settled.handle))
        return Operation(
            line=number,
            kind="update" if settled.handle else "create",
            handles=(settled.handle,) if settled.handle else (),
            statement=self._statement(settled),
            reason=_reason(settled, zh=language(settled.text) == "zh"),
            tags=settled.sense.purposes[:1] if settled.line else (),
            evidence=evidence,
            valid_until=_end(settled),
        )

    def _statement(self, settled: Settled) -> str:
        if settled.line is None or (settled.handle and not settled.changed):
            return self._statements[settled.handle]
        return written(
            StatementParts(
                said=settled.text,
                name=settled.line.name,
                on=settled.line.on,
                about=settled.about,
                agreed=tuple(dict.fromkeys(line.name for line in settled.agreed)),
                days=tuple(dict(future_days(settled.line.folded, settled.line.on)).items()),
            )
        )

    def read(self, at: int) -> None:
        """Add what a message settles, in place of what it replaces."""
        line = self._lines[at]
        asked, answers = self.asked(at)
        agreed = self._agreement(at) or self._agreement(at, says=acknowledges)
        new = Settled(line.text, line, self._sense(at), agreed=agreed, likely=self.likely(at, answers=answers))
        if self._is_said_again(new, asked, answers=answers):
            return
        if is_order(line.text) or self._is_laughed_at(at):
            return
        if any(self._weights.says(gone, new.wording) for gone in self._deleted):
            return
        old = self._replaced(new, asked, answers=answers) if _may_change(new, answers=answers) else None
        if old is not None:
            self._replace(old, new)
        elif not _holds(new):
            return
        elif asked and _goes_on(new, answers=answers):
            new.about = asked
        new.compare_anew()
        self._settled.append(new)

    def likely(self, at: int, *, answers: bool) -> float:
        """Return how likely it is that a message holds."""
        return holding.likelihood(self.signs_of(at, answers=answers))

    def signs_of(self, at: int, *, answers: bool) -> tuple[float, ...]:
        """Return the evidence that a message holds. `answers`: it follows a question."""
        line = self._lines[at]
        agreed, noted = self._agreement(at), self._agreement(at, says=acknowledges)
        reception = holding.Reception(
            agreed=len({other.sender for other in agreed}),
            noted=len({other.sender for other in noted}),
            answers=answers,
        )
        return holding.evidence(line.folded, self._sense(at), self._told(at).values, reception)

    def asked(self, at: int) -> tuple[str, bool]:
        """Return what a message goes on from, '' for nothing, and True if that was a question of another: the message
        that it replies to, else the one before it that has most to do with it."""
        line = self._lines[at]
        place = self._places.get(line.answers)
        if place is not None:
            return self._lines[place].text, asks(self._lines[place].folded)
        best, most, is_question = None, 0.0, False
        words = self._told(at).words
        for back, place in enumerate(range(at - 1, max(0, at - _ASKED_BEFORE) - 1, -1)):
            other, told = self._lines[place], self._told(place)
            if not told.words or line.at - other.at > _ASKED_WITHIN:
                continue
            question = other.sender != line.sender and asks(other.folded) and not self._is_answered(place, at)
            near = _QUESTION * question + _COMMON * bool(words & told.words) + _VALUED * bool(told.values) - back
            if near > most or best is None:
                best, most, is_question = other, near, question
        return (best.text, is_question) if best else ("", False)

    def _is_answered(self, place: int, at: int) -> bool:
        """Return True if another than its sender spoke between a question and a message."""
        return any(line.sender != self._lines[place].sender for line in self._lines[place + 1 : at])

    def _sense(self, at: int) -> Sense:
        """Return what a message does. One that goes on after the speaker's own question changes what that asks to
        change."""
        line, sense = self._lines[at], sense_of(self._lines[at].folded)
        before = self._lines[at - 1] if at else None
        if before is None or before.sender != line.sender or line.at - before.at > _GOES_ON or not sense.purposes:
            return sense
        question = sense_of(before.folded)
        if not (question.asked and question.changes):
            return sense
        return replace(sense, purposes=(*sense.purposes, "change"), points=True)

    def _is_laughed_at(self, at: int) -> bool:
        """Return True if the speaker or two others laugh at it at once."""
        line = self._lines[at]
        near = [
            near_line for near_line in self._lines[at + 1 : at + 4] if near_line.at - line.at < timedelta(minutes=10)
        ]
        laughing = [near_line.sender for near_line in near if laughs(near_line.text) and not agrees(near_line.text)]
        mine = bool(near) and near[0].sender == line.sender and laughs(near[0].text)
        return mine or len({*laughing} - {line.sender}) > 1

    def _is_said_again(self, new: Settled, asked: str, *, answers: bool) -> bool:
        """Note a message that says what is settled, and return True if one does."""
        assert new.line is not None
        for old in reversed(self._settled):
            if old.over or old.line is new.line:
                continue
            if old.line is None and self._known[old.handle].on and new.text.startswith(old.text):
                old.line, old.sense, old.agreed, old.likely = new.line, new.sense, new.agreed, new.likely
                old.compare_anew()
                before = self._replaced(old, asked, answers=answers)
                if before is not None and not before.handle:
                    before.over = True
                return True
            if not new.sense.asked and new.words and self._says(old, new):
                old.again.append(new.line)
                return True
        return False

    def _says(self, old: Settled, new: Settled) -> bool:
        if not old.wording.allows(new.wording) or not new.wording.details <= old.wording.details:
            return False
        likeness = self._weights.likeness(old.wording, new.wording)
        shared = len(old.statement.all_words & new.statement.words)
        return likeness >= _LIKE or (
            shared >= _FEWEST_SHARED and self._weights.share(old.wording, new.wording) >= _SAID
        )

    def _replaced(self, new: Settled, asked: str, *, answers: bool) -> Settled | None:
        """Return what a message replaces, the likeliest; None if nothing is likely."""
        olds = [
            old for old in self._settled if not (old.over or old is new or (old.handle and old.handle == new.handle))
        ][-_MOST_OLD:]
        likely = likelihoods(self.signs(olds, new, asked, answers=answers), agreed=bool(new.agreed))
        best = max(range(len(olds)), key=lambda place: (likely[place], place), default=None)
        return olds[best] if best is not None and likely[best] >= LEAST else None

    def signs(self, olds: Sequence[Settled], new: Settled, asked: str, *, answers: bool) -> list[tuple[float, ...]]:
        """Return for each settled thing the evidence that a message replaces it."""
        assert new.line is not None
        line, name, people = new.line, fold(new.line.name), self._people_in(new)
        near = [
            Circumstances(
                same_sender=bool(old.line and old.line.sender == line.sender),
                named=len(name) > 1 and name in old.statement.folded,
                lines=max(1, line.number - old.line.number) if old.line else _LONG_AGO,
                people_of_old=self._people_in(old),
                people_of_new=people,
                apart=line.at - old.line.at if old.line else timedelta(days=1),
            )
            for old in olds
        ]
        statements = [old.statement for old in olds]
        return evidence(
            list(zip(statements, near, strict=True)), new.statement, asked, answers=answers, rarity=self._rarity
        )

    def _people_in(self, settled: Settled) -> frozenset[str]:
        """Return the members whom a statement names, and its sender if that is who does something."""
        named = self._named(settled.statement.folded)
        return named | {fold(settled.line.name)} if settled.line and settled.statement.does_it else named

    def _rarity(self, word: str) -> float:
        return self._subjects.get(word, 1.0)

    def _replace(self, old: Settled, new: Settled) -> None:
        """Put a message in the place of what it replaces, with what is left of that beside it."""
        old.over = True
        for other in self._settled:
            if other.about == old.text and not other.over:
                other.about = ""
                other.compare_anew()
        new.handle, new.changed = old.handle, True
        if not new.sense.purposes:
            new.sense = replace(new.sense, purposes=("change", *old.sense.purposes))
        left = "" if new.is_cancelling else _left_of(old, new) or _other_clauses(old, new)
        times = times_in(f"{old.text} {old.about}") if not (new.sense.timed or new.is_cancelling) else []
        new.about = left or " ".join([*_surfaces(old, new), *times])


def _agreement(lines: Sequence[Line], at: int, *, says: Callable[[str], bool] = agrees) -> tuple[Line, ...]:
    """Return the next messages of others that agree with one, up to one that settles something else."""
    line, agreements = lines[at], []
    for other in lines[at + 1 : at + 1 + _ANSWERS]:
        if other.at - line.at > _ANSWERED_WITHIN:
            break
        if other.sender == line.sender:
            if sense_of(other.folded).purposes:
                break
            continue
        if other.answers not in ("", line.message_id):
            continue
        if says(other.text):
            agreements.append(other)
        elif sense_of(other.folded).holds(1):
            break
    return tuple(agreements)


def _end(settled: Settled) -> date | None:
    """Return the last day of a plan; None for what goes on, such as a rota of several weekdays."""
    line = settled.line
    if line is None or not settled.sense.passes:
        return None
    weekdays = {key for key in keys_of(fold(f"{settled.about} {settled.text}")) if key.startswith(WEEKDAY)}
    return last_named_day(line.folded, line.on) if len(weekdays) < _ROTA else None


def _holds(new: Settled) -> bool:
    """Return True if a message is worth remembering. A question is if others agree; a cancellation of nothing and
    a bare agreement are not."""
    if (new.sense.asked and not new.agreed) or (new.is_cancelling and not new.words):
        return False
    if agrees(new.text) and not new.statement.values and len(new.words) < _FEWEST_SHARED:
        return False
    if new.sense.holds(len({line.sender for line in new.agreed})):
        return True
    return new.likely >= (holding.LEAST if new.sense.score >= 0 else _AGAINST_RULES)


def _may_change(new: Settled, *, answers: bool) -> bool:
    """Return True if a message that would not hold by itself may still change what holds."""
    assert new.line is not None
    if _holds(new):
        return True
    return (
        (answers or new.sense.changes or corrects(new.line.folded))
        and not asks(new.line.folded)
        and not thanks(new.line.folded)
    )


def _goes_on(new: Settled, *, answers: bool) -> bool:
    """Return True if a message cannot be read alone: it names little, or is a short answer."""
    if answers:
        return len(new.words) < _FEW_WORDS_OF_ANSWER
    return not new.words and (new.sense.points or len(new.text) <= _SHORT)


def _deletion(number: int, old: Settled, better: Settled) -> Operation:
    assert better.line is not None
    return Operation(
        line=number,
        kind="delete",
        handles=(old.handle,),
        reason="为更新的内容腾出位置。" if language(old.text) == "zh" else "It made room for something newer.",
        evidence=(better.line.handle,),
    )


def _left_of(old: Settled, new: Settled) -> str:
    """Return what is left of an old statement when a new one gives another value for it; '' if it gives none."""
    parts, changed = list[str](), False
    for text, values in ((old.about, old.statement.about_values), (old.text, old.statement.values)):
        gone = _given_again(values, new.statement.values)
        changed |= bool(gone)
        if text and not (gone and parts and not subject_words(fold(text))):
            parts.append(cut_out(text, [value.span for value in gone]))
    return " ".join(filter(None, parts)) if changed else ""


def _other_clauses(old: Settled, new: Settled) -> str:
    """Return an old statement of several clauses without those that a new one speaks of; '' if that leaves none, or
    all."""
    text = " ".join(filter(None, (old.about, old.text)))
    ends = [0, *(match.end() for match in CLAUSE_END.finditer(text)), len(text)]
    clauses = [text[start:end] for start, end in pairwise(ends) if end > start]
    shares = [_meeting(clause, new) for clause in clauses]
    if len(clauses) < _FEWEST_CLAUSES or not any(shares):
        return ""
    kept = [GONE if share >= max(shares) * _MOSTLY else clause for clause, share in zip(clauses, shares, strict=True)]
    return "".join(kept) if any(clause != GONE and Statement(clause).words for clause in kept) else ""


def _meeting(clause: str, new: Settled) -> int:
    """Return how many words, values and numbers of things a clause has in common with a new statement."""
    told = Statement(clause)
    values = {value.text for value in told.values} & {value.text for value in new.statement.values}
    numbered = sum(bool(new.statement.numbered.get(noun, frozenset()) & held) for noun, held in told.numbered.items())
    return len(told.words & new.statement.words) + len(values) + numbered


def _given_again(old: Sequence[Value], new: Sequence[Value]) -> list[Value]:
    """Return the old values in whose place a new one stands."""
    gone = []
    for value in new:
        if value.denied:
            gone += [known for known in old if known.text == value.text]
            continue
        known = [one for one in old if value.is_of_kind(one) and not opposes(value, one)]
        if any(one.text == value.text for one in known):
            continue
        told = {one.text for one in new if one.kind == value.kind and not one.denied}
        if len({one.text for one in known}) <= len(told):
            gone += known
        elif known:
            best = max(known, key=value.covers)
            gone += [one for one in known if one.text == best.text] if value.covers(best) > 0 else []
    return gone


_MAX_SURFACES = 6


def _surfaces(old: Settled, new: Settled) -> list[str]:
    """Return the content words of an old text in its order, without days, numbers and those of the new one."""
    folded = fold(old.text)
    text = old.text if len(old.text) == len(folded) else folded
    taken, surfaces = 0, []
    for key, (start, end) in sorted(keys_of(folded).items(), key=lambda pair: (pair[1][0], -pair[1][1])):
        named = key in new.statement.words or key.startswith(WEEKDAY) or key[:1].isdigit()
        if not named and start >= taken:
            taken = end
            surfaces.append(text[start:end])
    return surfaces[:_MAX_SURFACES]


def _rarities(lines: Sequence[Line], characters: Sequence[frozenset[str]]) -> dict[str, float]:
    """Return for each word, by its beginning, and each Chinese character of the lines how rare it is, in (0, 1]."""
    counts: defaultdict[str, int] = defaultdict(int)
    for line, single in zip(lines, characters, strict=True):
        for key in {*map(beginning, line.keys), *single}:
            counts[key] += 1
    return {key: 1.0 / count**0.5 for key, count in counts.items()}


def _reason(settled: Settled, *, zh: bool) -> str:
    """Return what the messages do: in the language of the statement, without names, which may have to be forgotten."""
    if settled.changed and settled.handle:
        if settled.is_cancelling:
            return "后来的消息取消了它。" if zh else "A later message cancelled it."
        return "后来的消息改了它。" if zh else "A later message changed it."
    if settled.handle:
        return "又有消息说到。" if zh else "It was said again."
    english, chinese = _REASONS[next(iter(settled.sense.purposes), "rule")]
    others = len({line.sender for line in settled.agreed})
    if zh:
        return f"{chinese}，另有 {others} 人认可。" if others else f"{chinese}。"
    agreed = "one other agreed" if others == 1 else f"{others} others agreed"
    return f"{english}, and {agreed}." if others else f"{english}."


_REASONS: Mapping[Purpose, tuple[str, str]] = {
    "change": ("A message says what changes", "消息里说有变动"),
    "cancellation": ("A message called something off", "消息里说取消"),
    "decision": ("It was decided", "消息里作了决定"),
    "rule": ("A message says what holds here", "消息里定了规矩"),
    "habit": ("A message says what is usual here", "消息里说了惯例"),
    "role": ("A message says who does what", "消息里说了谁负责什么"),
    "person": ("A message tells of a person", "消息里说到一个人的情况"),
    "plan": ("It was planned", "消息里说了安排"),
}
