"""Reasons to doubt an operation, judged by words: what it says that no cited message speaks of, and what it drops."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from roomlore.core import lexicon
from roomlore.core.evolution.prompt import comparison_form, offered_as
from roomlore.core.evolution.requests import Operation
from roomlore.core.evolution.wording import (
    Detail,
    ParsedMaterial,
    ParsedText,
    adverse,
    forbids,
    is_mentioned,
    is_related,
    loss_reason,
    new_names,
    refuses_change,
    says_change,
    still_says,
)
from roomlore.core.memory.memory import Memory
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import HAN, fold, is_question, language

# The handle and the time of a line as the model saw it.
_TIME = lazy_pattern(r"[a-z]\d+ \[\w{3} (\d{4}-\d\d-\d\d) \d\d:\d\d\] ")
_AFTERNOON = lexicon.pattern("afternoon")
# A day or a month told from the day of the message, each in a group of its own.
_COMING = lazy_pattern(
    "|".join(
        f"(?P<{name}>{lexicon.alternatives(name)})"
        for name in ("today", "tomorrow", "day_after_tomorrow", "next_month", "end_of_month")
    )
)
# A date in figures, whose parts a statement may have without a message that says them.
_DATED = lazy_pattern(
    r"\d{4}-\d\d?-\d\d?|\d{4}年|\d{1,2} ?月|\d{1,2} ?[日号號]|\d{1,2}/\d{1,2}|\d{1,2}(?:st|nd|rd|th)\b"
)
# A run of figures.
_DIGITS = lazy_pattern(r"\d+")
_MONTHS = "|".join(map(str.title, lexicon.values("months", "en")))
# The name of a month beside a figure, with a capital letter, since may is also a verb.
_MONTH_NAME = lazy_pattern(rf"\b(?:{_MONTHS})[a-z]*\.? \d|\d (?:{_MONTHS})")
_DAYS = tuple(lexicon.values("weekdays", "en"))
_QUARTER = lexicon.pattern("quarter")
_JOKE = lexicon.pattern("unserious")
_LAUGH = lexicon.pattern("laughter")
_COUNT_OF_MERGE = 2
_DAY_PARTS = (("早中晚", "3"), ("早晚", "2"))
_GOES_ON = lazy_pattern(rf"^[哈嘿嗯噢哦,，\s]*(?:{lexicon.alternatives('taking_up')})")
"""What goes on from the message before it."""
# A name with the first letter of a second one: Tom B.
_INITIAL = lazy_pattern(r"\b[A-Z][a-z]+ [A-Z](?=\.|\b)")
# A time of day in figures; 1:2:3 is none.
_CLOCK = lazy_pattern(r"(?<![\d:])(\d{1,2}):(\d\d)(?![\d:])")
# The word right after a number.
_UNIT = lazy_pattern(r"\d ?([a-z]{2,12}|[\u4e00-\u9fff])")
_ONLY_IF = lexicon.pattern("only_if")
"""Two denials that demand something: who has none is not let in."""
_NOT_NOW = lexicon.pattern("not_now")
_ASKED_IF = lexicon.pattern("asked_if")


@dataclass(frozen=True, slots=True)
class Cited:
    """A cited message. `name`: its speaker. `text`: its words alone. `at`: its day, None if unknown."""

    wording: ParsedText
    name: str
    text: str
    at: date | None

    @property
    def hours(self) -> Iterator[Detail]:
        """Yield the numbers that its words may mean: 8 in the evening is 20, and 早中晚 is three times."""
        yield from (Detail("number", count) for parts, count in _DAY_PARTS if parts in self.text)
        numbers = {detail.value for detail in self.wording.details if detail.kind == "number"}
        small = [int(number) for number in numbers if number.isdigit() and len(number) <= 2]
        if "half" in numbers or _QUARTER.search(self.text):
            yield from (Detail("number", minutes) for minutes in ("15", "30", "45"))
        if _AFTERNOON.search(fold(self.text)):
            yield from (Detail("number", str(number + 12)) for number in small if number < 12)
            yield from (Detail("number", str(number - 12)) for number in small if 12 < number < 24)

    @property
    def dates(self) -> Iterator[Detail]:
        """Yield the parts of the dates that its words may mean on its day."""
        for day in self._dates():
            yield from (Detail("number", str(part)) for part in (day.year, day.month, day.day))
            yield Detail("day", _DAYS[day.weekday()])

    def _dates(self) -> Iterator[date]:
        if self.at is None:
            return
        for match in _COMING.finditer(fold(self.text)):
            if match["end_of_month"]:
                yield _last_of_month(self.at)
            elif match["next_month"]:
                yield _last_of_month(self.at) + timedelta(days=1)
            else:
                yield self.at + timedelta(days=1 if match["tomorrow"] else 2 if match["day_after_tomorrow"] else 0)
        named = {detail.value for detail in self.wording.details if detail.kind == "day"} & set(_DAYS)
        coming = (self.at + timedelta(days=ahead) for ahead in range(-7, 15))
        yield from (day for day in coming if _DAYS[day.weekday()] in named)


def _last_of_month(day: date) -> date:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)


@dataclass(frozen=True)
class Doubts:
    """The material that operations are judged by.

    `shown`: the messages as the model saw them. `conversation`: the same, parsed. `offered`: memories by handle.
    """

    shown: str
    conversation: ParsedMaterial
    offered: Mapping[str, Memory]

    def of(self, operation: Operation, evidence: Sequence[str], *, silent: bool = False) -> str:
        """Return the reason to doubt it in a sentence, '' if there is none.

        `evidence`: the handles of the messages that count. `silent`: a delete may rest on silence.
        """
        cited = [self._messages[handle] for handle in evidence if handle in self._messages]
        handles = list(self._messages)
        before = [self._messages[handles[handles.index(handle) - 1]] for handle in evidence if handle in handles[1:]]
        memories = [memory for handle in operation.handles if (memory := offered_as(handle, self.offered))]
        others = [memory_offered for memory_offered in self.offered.values() if memory_offered not in memories]
        case = _Case(self.conversation.of(operation.statement), cited, memories, self.conversation, before, others)
        if operation.kind == "delete":
            return "" if silent else case.of_delete()
        return case.of_merge() if len(memories) >= _COUNT_OF_MERGE else case.of_statement()

    def of_account(self, text: str, evidence: Sequence[str]) -> str:
        """Return the reason to doubt a sentence that tells what these messages say, '' if there is none."""
        cited = [self._messages[handle] for handle in evidence if handle in self._messages]
        return _Case(self.conversation.of(text), cited, (), self.conversation).of_account()

    @cached_property
    def _messages(self) -> Mapping[str, Cited]:
        messages: dict[str, Cited] = {}
        for line in self.shown.splitlines():
            handle, _, rest = line.partition(" ")
            cited_line = rest.partition("] ")[2]
            stamp = _TIME.match(line)
            name, _, text = cited_line.partition(": ")
            at = date.fromisoformat(stamp[1]) if stamp else None
            messages[handle] = Cited(self.conversation.of(cited_line), name, text, at)
        return messages


@dataclass(frozen=True)
class _Case:
    """One operation: the statement, the cited messages, and the memories that it replaces. `before`: the messages right
    before the cited ones. `others`: the memories that it leaves alone."""

    statement: ParsedText
    cited: Sequence[Cited]
    memories: Sequence[Memory]
    conversation: ParsedMaterial
    before: Sequence[Cited] = ()
    others: Sequence[Memory] = ()

    def of_statement(self) -> str:
        old = self._old
        if old and comparison_form(old[0].text) == comparison_form(self.statement.text):
            return (self._invented(trusted=[]) or self._joke()) if self.memories[0].doubtful else ""
        return (
            self._invented(trusted=self._trusted)
            or self._joke()
            or self._unmentioned()
            or self._of_another()
            or self._elsewhere()
            or self._denied()
            or self._lost()
            or self._only_asked()
        )

    def of_account(self) -> str:
        return self._invented(trusted=()) or self._unmentioned() or self._denied()

    def of_merge(self) -> str:
        kept = next((memory.doubtful for memory in self.memories if memory.doubtful and not self.cited), "")
        return self._invented(trusted=self._trusted) or self._left_out() or kept

    def of_delete(self) -> str:
        messages = self._wordings
        for memory in self._old:
            if still_says(memory, messages) and not any(map(says_change, self._texts)):
                return "A cited message still says it."
            if self._comparable(memory) and not is_mentioned(memory, messages):
                return "No cited message speaks of it."
        return self._joke()

    @cached_property
    def _old(self) -> list[ParsedText]:
        return [self.conversation.of(memory.statement) for memory in self.memories]

    @cached_property
    def _trusted(self) -> list[ParsedText]:
        """Return the memories whose details are not doubtful themselves."""
        return [self.conversation.of(memory.statement) for memory in self.memories if not memory.doubtful]

    @cached_property
    def _wordings(self) -> list[ParsedText]:
        return [message.wording for message in self.cited]

    @cached_property
    def _heard(self) -> list[ParsedText]:
        """Return what the cited messages say, without their speakers."""
        return [self.conversation.of(text) for text in self._texts]

    @cached_property
    def _said_details(self) -> frozenset[Detail]:
        counted = {len(self.cited), len({cited.name for cited in self.cited})}
        spoken = {detail for cited in self.cited for detail in (*cited.wording.details, *cited.hours)}
        if any(_GOES_ON.match(fold(cited.text)) for cited in self.cited):
            spoken |= {detail for cited in self.before for detail in cited.wording.details if detail.kind == "day"}
        dated = {part for match in _DATED.finditer(self.statement.text) for part in _DIGITS.findall(match[0])}
        if _MONTH_NAME.search(self.statement.text):
            dated |= {detail.value for detail in self.statement.details if detail.kind == "number"}
        dates = {detail for cited in self.cited for detail in cited.dates}
        years = {cited.at.year for cited in self.cited if cited.at}
        spoken |= {Detail("number", str(year + ahead)) for year in years for ahead in (0, 1)}
        spoken |= {
            date_detail
            for date_detail in dates
            if date_detail.kind == "day" or date_detail.value in {part.lstrip("0") for part in dated}
        }
        return frozenset(spoken | {Detail("number", str(count)) for count in counted})

    def _invented(self, trusted: Iterable[ParsedText]) -> str:
        """Return the reason if it says a number, a day or a name that no cited message and no memory speaks of."""
        known = self._said_details.union(*(memory.details for memory in trusted))
        words = fold("\n".join([*(memory.text for memory in self._wordings), *(memory.text for memory in trusted)]))
        new = {detail for detail in self.statement.details - known if detail.kind != "name"}
        new |= {Detail("name", name) for name in self._names() if fold(name) not in words}
        if not new:
            return ""
        first = min((detail.kind, detail.value) for detail in new)
        return f"No cited message speaks of the {first[0]} {first[1]!r}."

    def _names(self) -> Iterator[str]:
        yield from (detail.value for detail in self.statement.named)
        yield from new_names(self.statement.text)

    def _comparable(self, other: ParsedText) -> bool:
        """Return True if all is in one language, so that words can be compared."""
        own = language(other.text)
        return all(language(wording.text) == own for wording in self._wordings)

    def _unmentioned(self) -> str:
        """Return the reason if the cited messages share nothing with what is new."""
        if not self._comparable(self.statement) or not self.statement.words:
            return ""
        shared = any(wording.distinctive & self.statement.distinctive for wording in self._heard)
        spoken = {detail for detail in self.statement.details if detail.kind != "name"} & self._said_details
        return "" if shared or spoken else "No cited message speaks of it."

    def _elsewhere(self) -> str:
        """Return the reason if an update rests on messages that do not speak of what its memory is about."""
        if not self._old or not self._comparable(self._old[0]) or any(map(says_change, self._texts)):
            return ""
        about, new = self._old[0].distinctive, self.statement.distinctive - self._old[0].distinctive
        kept = about & self.statement.distinctive or about
        if about <= self.statement.distinctive and self._old[0].details <= self.statement.details:
            return ""
        shared = {word for wording in self._heard for word in wording.distinctive & new}
        if any(wording.distinctive & kept for wording in self._heard) or len(shared) > 1 or self._same_unit():
            return ""
        if any(wording.details & self._old[0].details & self.statement.details for wording in self._heard):
            return ""
        return "No cited message speaks of what the memory is about." if about & self.statement.distinctive else ""

    def _same_unit(self) -> bool:
        """Return True if a message has a new number of the statement with the unit that the memory has."""
        units = set(_UNIT.findall(fold(self.statement.text))) & set(_UNIT.findall(fold(self._old[0].text)))
        mentioned_units = {unit for text in self._texts for unit in _UNIT.findall(fold(text))}
        return bool(units & mentioned_units and self._new & self._said_details)

    def _of_another(self) -> str:
        """Return the reason if the cited messages name not the person of the memory, but that of another memory."""
        mine = {name for memory in self.memories if (name := _person(memory.statement))}
        theirs = {name for other in self.others if (name := _person(other.statement))} - mine
        if not mine or any(name in message.text or name in message.name for message in self.cited for name in mine):
            return ""
        named = next((name for message in self.cited for name in sorted(theirs) if name in message.text), "")
        return f"A cited message speaks of {named!r}, not of the person of the memory." if named else ""

    def _about(self) -> list[str]:
        """Return the clauses of the cited messages that share words with the statement or the memory."""
        words = self.statement.words.union(*(memory.words for memory in self._old))
        clauses = (self.conversation.of(part) for message in self.cited for part in _answered(_clauses(message.text)))
        return [clause.text for clause in clauses if clause.words & words]

    def _denied(self) -> str:
        """Return the reason if it denies what the messages affirm, or affirms what they deny."""
        clauses = self._about()
        if not clauses or not self._comparable(self.statement):
            return ""
        if any(map(refuses_change, clauses)) and self._old:
            return "A cited message says that it does not change."
        warned = frozenset().union(*map(adverse, clauses))
        denies = bool(self.statement.negations or adverse(self.statement.text) - warned)
        affirms = not forbids(self.statement.text)
        denied = any(forbids(memory.text) for memory in self._old)
        replaced = any(detail.kind != "name" for detail in self._new & self._said_details)
        texts = [_ONLY_IF.sub(" ", fold(text)) for text in self._texts]
        if denies and not denied and not any(forbids(text) or says_change(text) for text in texts):
            return "It denies or forbids something, and no cited message does."
        if affirms and not replaced and all(map(forbids, clauses)) and not any(map(_changes, clauses)):
            return "The cited messages deny or forbid it."
        if denied and affirms and not any(says_change(clause) or not forbids(clause) for clause in clauses):
            return "The memory denies or forbids it, and no cited message allows it."
        return ""

    @property
    def _new(self) -> frozenset[Detail]:
        """Return the details that the memories do not have."""
        return self.statement.details.difference(*(memory.details for memory in self._old))

    @property
    def _texts(self) -> list[str]:
        return [message.text for message in self.cited]

    def _joke(self) -> str:
        """Return the reason if the cited messages do not sound serious."""
        folded = [fold(text) for text in self._texts]
        if any(_JOKE.search(text) for text in folded) or (folded and all(_LAUGH.search(text) for text in folded)):
            return "The cited messages may be a joke."
        if any(_LAUGH.search(fold(message.text)) and self._is_taken_up(message) for message in self.before):
            return "The cited messages take up what may be a joke."
        return ""

    def _is_taken_up(self, before: Cited) -> bool:
        """Return True if the statement and a cited message repeat a word of it that no memory has."""
        new_words = self.conversation.of(before.text).distinctive & self.statement.distinctive
        known = frozenset[str]().union(*(memory.distinctive for memory in self._old))
        return any(wording.distinctive & (new_words - known) for wording in self._heard)

    def _only_asked(self) -> str:
        """Return the reason if it states something new where the cited messages only ask."""
        asks = self.cited and all(is_question(message.text) for message in self.cited)
        return "The cited messages only ask about it." if self._new and asks else ""

    def _lost(self) -> str:
        """Return the reason if an update drops something of its memory, though nobody says that it changed."""
        if not self._old or any(says_change(text) for text in self._texts):
            return ""
        (old,) = self._old
        if not self._comparable(old) or language(old.text) != language(self.statement.text):
            return ""
        if not is_related(old, self.statement):
            return "It speaks of something else than the memory that it replaces."
        if self._new & self._said_details or self._says_hour(old):
            return ""
        return loss_reason(old, self.statement, self._wordings, merged=self.statement.details != old.details)

    def _says_hour(self, old: ParsedText) -> bool:
        """Return True if the statement has one full hour in place of a time of the memory, and a message says it."""
        new, before = _CLOCK.findall(self.statement.text), _CLOCK.findall(old.text)
        if len(new) != 1 or len(before) != 1 or new == before or new[0][1] != "00":
            return False
        return Detail("number", new[0][0].lstrip("0")) in self._said_details

    def _left_out(self) -> str:
        """Return the reason if a merge leaves out a person, or what one of its memories says."""
        tongue = language(self.statement.text)
        changed = any(map(says_change, self._texts))
        for memory in self._old:
            for name in (
                *(detail.value for detail in memory.named),
                *new_names(memory.text),
                *_INITIAL.findall(memory.text),
            ):
                if fold(name) not in fold(self.statement.text) and language(memory.text) == tongue:
                    return f"It leaves out the name {name!r} of a memory."
            if changed or language(memory.text) != tongue:
                continue
            gone = {detail for detail in memory.details - self.statement.details if detail.kind != "name"}
            replaced = {detail.kind for detail in self.statement.details & self._said_details}
            lost = sorted((detail.kind, detail.value) for detail in gone if detail.kind not in replaced)
            if lost:
                return f"It leaves out the {lost[0][0]} {lost[0][1]!r} of a memory."
            if not is_related(memory, self.statement):
                return "It leaves out what one of the memories says."
        return ""


# Where one clause ends and the next begins.
_CLAUSE = lazy_pattern(rf"(?<! ) +(?=[{HAN}])|[,;:.!?，；：。！？、]\s*|\bbut\b|但是?|不过")


def _answered(clauses: Sequence[str]) -> Iterator[str]:
    """Yield the clauses; a question that somebody asked together with the answer that follows."""
    question = ""
    for clause in clauses:
        if _ASKED_IF.search(fold(clause)):
            question = clause
            continue
        yield f"{question} {clause}" if question else clause
        question = ""
    if question:
        yield question


def _changes(clause: str) -> bool:
    """Return True if a clause says that something changed, not only that it is not so now."""
    return says_change(_NOT_NOW.sub(" ", fold(clause)))


def _person(statement: str) -> str:
    """Return the name that a statement begins with, '' if its grammar shows none."""
    noted = re.match(r"([^\s（(，,]{2,12})[（(]", statement)
    return noted[1] if noted else next((name for name in new_names(statement) if statement.startswith(name)), "")


def _clauses(text: str) -> list[str]:
    return [part.strip() for part in _CLAUSE.split(text) if part and part.strip()]
