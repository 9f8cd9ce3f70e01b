"""What may be remembered: the limits of a memory, and the one form in which it is stored."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.models import SCOPES, MemoryKind, Source, check_scope
from roomlore.core.text import fold, graphemes

MAX_STATEMENT = 4_000
MAX_LABEL = 64
MAX_REASON = 500
MAX_TAGS = 32
MAX_SOURCES = 1_000
MAX_BATCH = 10_000
_CODE_POINTS_A_CHARACTER = 8
"""More than any script or emoji takes; a text of nothing but marks is one character to a reader."""


class Keep(Enum):
    """Leave it as it is: where None says something of its own."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """Something to remember.

    `scope`: whom it is about. `confidence`: in [0, 1], None where nobody said. `sources`: the messages that support it.
    `memory_id`: an id of the caller's own makes adding it safe to repeat. `created_at`, `updated_at`: since when it is
    known and when that was last said, by default now. `made_by`, `reason`: for the log.
    """

    scope: str
    statement: str
    kind: MemoryKind = MemoryKind.FACT
    confidence: float | None = None
    category: str = ""
    tags: Sequence[str] = ()
    sources: Sequence[Source] = ()
    memory_id: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    made_by: str = "caller"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What to change of a memory; None leaves it as it is. A confidence of None takes it away."""

    statement: str | None = None
    confidence: float | Keep | None = KEEP
    category: str | None = None
    tags: Sequence[str] | None = None
    sources: Sequence[Source] | None = None


def is_longer(text: str, most: int) -> bool:
    """Whether it has more characters than `most`, as people count them."""
    return len(text) > most and (len(text) > most * _CODE_POINTS_A_CHARACTER or graphemes(text) > most)


def normal(statement: str) -> str:
    """The form in which statements are compared: folded, white space as one space."""
    return " ".join(fold(statement).split())


def checked(new: NewMemory) -> NewMemory:
    """The memory as it is stored. Raises `InvalidInput` that names what to mend."""
    return replace(
        new,
        scope=check_scope(new.scope),
        statement=check_statement(new.statement),
        kind=check_kind(new.kind),
        confidence=check_confidence(new.confidence),
        category=_label(new.category, "category"),
        tags=check_tags(new.tags),
        sources=check_sources(new.sources),
        memory_id=None if new.memory_id is None else check_memory_id(new.memory_id),
        created_at=_moment(new.created_at, "created_at"),
        updated_at=_moment(new.updated_at, "updated_at"),
        made_by=_label(new.made_by, "made_by"),
        reason=check_reason(new.reason),
    )


def checked_edit(edit: Edit) -> Edit:
    """The edit as it is stored. Raises `InvalidInput`."""
    return Edit(
        statement=None if edit.statement is None else check_statement(edit.statement),
        confidence=KEEP if isinstance(edit.confidence, Keep) else check_confidence(edit.confidence),
        category=None if edit.category is None else _label(edit.category, "category"),
        tags=None if edit.tags is None else check_tags(edit.tags),
        sources=None if edit.sources is None else check_sources(edit.sources),
    )


def check_statement(given: Any) -> str:
    """Without white space around it."""
    text = _text(given, "The statement", MAX_STATEMENT).strip()
    if not text:
        raise InvalidInput("The statement is empty; say what is to be remembered.")
    return text


def scope_of(given: Any) -> str:
    """A scope as it is; the id of a group as the scope of that group. An id that begins as a scope does is taken for
    one: write 'group:user:x' for a group of such a name."""
    if not isinstance(given, str) or not given:
        raise InvalidInput(f"A group is {given!r:.60}; give the id of a room, or a scope such as user:anna.")
    kind, colon, name = given.partition(":")
    return check_scope(given if colon and name and kind in SCOPES else f"group:{given}")


def check_moment(given: Any, name: str = "since") -> datetime | None:
    """A time in UTC; one without a zone is taken for UTC. None stays None."""
    return _moment(given, name)


def check_kind(given: Any) -> MemoryKind:
    try:
        return MemoryKind(given)
    except ValueError as error:
        raise InvalidInput(f"kind is {given!r:.60}; it is one of {', '.join(MemoryKind)}.") from error


def check_kinds(given: Any) -> list[MemoryKind]:
    """Each once, in order; one alone may be a text."""
    if not isinstance(given, Iterable):
        raise InvalidInput("kinds is a list of kinds of memories, such as ['fact'].")
    kinds = [given] if isinstance(given, str) else list(given)
    try:
        return sorted({MemoryKind(kind) for kind in kinds})
    except ValueError as error:
        raise InvalidInput(f"Kinds of memories are {', '.join(MemoryKind)}, not {given!r:.60}.") from error


def check_confidence(given: Any) -> float | None:
    """In [0, 1]; None stays None, and 0 is 0."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidInput(f"confidence is {given!r:.60}; it must be a number from 0 to 1, or None.")
    return float(given) + 0.0


def check_strength(given: Any) -> float:
    """In [0, 1]."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidInput(f"strength is {given!r:.60}; it must be a number from 0 to 1.")
    return float(given) + 0.0


def check_tags(given: Any) -> tuple[str, ...]:
    """Each once, in their order."""
    tags = tuple(dict.fromkeys(_label(tag, "A tag") for tag in _items(given, "tags", "texts")))
    if len(tags) > MAX_TAGS:
        raise InvalidInput(f"{len(tags)} tags are too many; give at most {MAX_TAGS}.")
    if "" in tags:
        raise InvalidInput("A tag is empty; leave it out.")
    return tags


def check_sources(given: Any) -> tuple[Source, ...]:
    """Each once, in their order."""
    sources = tuple(dict.fromkeys(_source(one) for one in _items(given, "sources", "roomlore.Source")))
    if len(sources) > MAX_SOURCES:
        raise InvalidInput(f"{len(sources)} sources are too many; give at most {MAX_SOURCES}.")
    return sources


def check_memory_id(given: Any) -> str:
    if not isinstance(given, str) or not given or "\0" in given:
        raise InvalidInput(f"memory_id is {given!r:.60}; it must be a non-empty text without NUL.")
    if len(given) > MAX_ID_CHARS:
        raise InvalidInput(f"memory_id has {len(given)} characters; at most {MAX_ID_CHARS}.")
    return given


def check_reason(given: Any) -> str:
    return _text(given, "reason", MAX_REASON).strip()


def _source(given: Any) -> Source:
    ids = (given.room_id, given.message_id) if isinstance(given, Source) else ()
    if not ids or not all(isinstance(one, str) and 0 < len(one) <= MAX_ID_CHARS for one in ids):
        raise InvalidInput(
            f"A source is {given!r:.80}; it must be a roomlore.Source with the ids of a room and of a message, "
            f"each of 1 to {MAX_ID_CHARS} characters."
        )
    return Source(*ids)


def _items(given: Any, name: str, what: str) -> list[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(f"{name} is {given!r:.60}; it must be a list of {what}.")
    return list(given)


def _label(given: Any, name: str) -> str:
    return _text(given, name, MAX_LABEL).strip()


def _text(given: Any, name: str, most: int) -> str:
    if not isinstance(given, str):
        raise InvalidInput(f"{name} is {given!r:.60}; it must be a text.")
    if is_longer(given, most):
        raise InvalidInput(f"{name} is longer than {most} characters: {given[:40]!r}…; shorten it.")
    return given


def _moment(given: Any, name: str) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise InvalidInput(f"{name} is {given!r:.60}; it must be a datetime, or None for now.")
    try:
        return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(
            f"{name} is {given.isoformat()}, which is not within the years 1 to 9999 in UTC; give a day or a time "
            "such as 2024-05-01T12:00Z."
        ) from error
