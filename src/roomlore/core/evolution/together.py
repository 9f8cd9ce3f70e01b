"""Several people in one call of a model: one prompt shows them all, and its answer is taken apart again.

Nothing may cross between people. Each has handles of their own, a line counts for the person whose handles it names,
and a person whose part of the answer is missing or looks like another's is asked about alone.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from roomlore.core.evolution.answers import read_answer
from roomlore.core.evolution.requests import Operation
from roomlore.core.evolution.wording import Names, ParsedText
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import fold, language, terms

_MESSAGES, _MEMORIES = 2_000, 3_000
"""The most characters of a person's messages and memories; one with more is asked about alone."""
_EACH = 1_000
"""The handles of a person: those of the first begin at 1001."""
# The handle that begins a line.
_LINE = lazy_pattern(r"^([cm])(\d{1,6}) ", re.MULTILINE)
# A handle of one person among several.
_HANDLE = lazy_pattern(r"([cm])(\d{4,6})")
# The same inside a text; m1001a is none.
_LIKE_HANDLE = lazy_pattern(r"(?<![a-z0-9])[cm][0-9]{4,6}(?![a-z0-9])")


@dataclass(frozen=True)
class ShownPerson:
    """The part of a prompt about one person: the name, and a line under a handle for each memory and each message."""

    name: str
    memories: str
    messages: str

    @property
    def is_small(self) -> bool:
        """True if others can be asked about in the same call."""
        whole = f"{self.name}\n{self.memories}\n{self.messages}"
        handles = [int(number) for _, number in _LINE.findall(f"{self.memories}\n{self.messages}")]
        fits = len(self.messages) <= _MESSAGES and len(self.memories) <= _MEMORIES and max(handles, default=0) < _EACH
        return fits and not _LIKE_HANDLE.search(unicodedata.normalize("NFKC", whole).lower())

    @cached_property
    def wording(self) -> ParsedText:
        return ParsedText(self._text, Names((), (self._text,)))

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(terms(self._text))

    @cached_property
    def _text(self) -> str:
        """Return name, memories and messages without handles and times."""
        lines = (line.partition("]")[2].lstrip(": ") for line in f"{self.memories}\n{self.messages}".splitlines())
        return "\n".join((self.name, *lines))


def shown_together(people: Sequence[ShownPerson]) -> str:
    """Return a block for each person; all handles are different."""
    return "\n\n".join(
        f'<person name="{person.name.replace(chr(34), " ")}">\n'
        f"<memories>\n{_numbered(person.memories, at)}\n</memories>\n"
        f"<messages>\n{_numbered(person.messages, at)}\n</messages>\n</person>"
        for at, person in enumerate(people, start=1)
    )


def _numbered(lines: str, at: int) -> str:
    return _LINE.sub(lambda match: f"{match[1]}{at * _EACH + int(match[2])} ", lines)


def taken_apart(answer: str, people: Sequence[ShownPerson], *, repair: Callable[[str], str]) -> list[str | None]:
    """Return each person's part of an answer, with their own handles, as lines of JSON.

    None: the part is missing, names another person's handles, or says what only another one's lines say, so this person
    is to be asked about alone. A line that cannot be read, or names nobody's handles, may be about anybody: then
    everybody is.
    """
    read, everybody = read_answer(answer, repair=repair), set(range(len(people)))
    if read.rejected:
        return [None] * len(people)
    parts: dict[int, list[Operation]] = {}
    mixed = set[int]()
    for operation in read.operations:
        owners = set(_owners((*operation.handles, *operation.evidence)))
        if not owners or not owners <= everybody:
            return [None] * len(people)
        if len(owners) > 1:
            mixed |= owners
        for owner in owners:
            parts.setdefault(owner, []).append(operation)
    mixed |= {at for at in parts.keys() - mixed if _crosses(parts[at], people, at)}
    return [_written(parts[at]) if at in parts and at not in mixed else None for at in range(len(people))]


def _owners(handles: Iterable[str]) -> Iterator[int]:
    for handle in handles:
        match = _HANDLE.fullmatch(unicodedata.normalize("NFKC", handle).strip().lower())
        yield int(match[2]) // _EACH - 1 if match else -1


def _crosses(operations: Sequence[Operation], people: Sequence[ShownPerson], at: int) -> bool:
    """Return True if a statement has a word, number, day or name that others' lines have and the person's have not."""
    own, others = people[at], [person for place, person in enumerate(people) if place != at]
    theirs = frozenset[str]().union(*(other.words for other in others)) - own.words
    others_details = frozenset[object]().union(*(other.wording.details for other in others)) - own.wording.details
    common = _common(people)
    for operation in operations:
        if not operation.statement:
            continue
        details = ParsedText(operation.statement, Names((), (own.name, operation.statement))).details
        words = {word for word in terms(operation.statement) if word in theirs and word not in common}
        if words or details & others_details or language(operation.statement) != language(own.wording.text):
            return True
    return False


def _common(people: Sequence[ShownPerson]) -> frozenset[str]:
    """Return the words that most of several people use: they tell nothing of one of them."""
    counts = Counter(word for person in people for word in person.words)
    return frozenset(word for word, count in counts.items() if count > 2 and 2 * count > len(people))


def _written(operations: Sequence[Operation]) -> str:
    return "\n".join(json.dumps(_fields(operation), ensure_ascii=False) for operation in operations)


def _fields(operation: Operation) -> dict[str, object]:
    """Return an operation in the form that it was read from, with a person's own handles."""
    given = {
        "action": operation.kind,
        "old_ids": [_own(handle) for handle in operation.handles],
        "evidence": [_own(handle) for handle in operation.evidence],
        "statement": operation.statement,
        "change_reason": operation.reason,
        "tags": list(operation.tags),
        "confidence": operation.confidence,
        "valid_from": operation.valid_from and operation.valid_from.isoformat(),
        "valid_until": operation.valid_until and operation.valid_until.isoformat(),
    }
    return {name: value for name, value in given.items() if value not in (None, "", [])}


def _own(handle: str) -> str:
    name = fold(handle).strip()
    return f"{name[0]}{int(name[1:]) % _EACH}"
