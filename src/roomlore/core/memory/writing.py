"""The limits of a memory, and its normalised form for storage."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, tzinfo
from enum import Enum
from typing import Any, Final, TypedDict

from roomlore.core.audience import EvidenceRoom, evidence_of
from roomlore.core.dates import end_of, is_day, start_of
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.memory import (
    SCOPES,
    MemoryKind,
    Source,
    check_scope,
    owner_of,
)
from roomlore.core.text import fold, graphemes
from roomlore.core.texts import Phrase

MAX_STATEMENT = 4_000
MAX_LABEL = 64
MAX_REASON = 500
MAX_TAGS = 32
MAX_SOURCES = 1_000
MAX_PEOPLE = 100
MAX_BATCH = 10_000
_SHOWN = 3
_CODE_POINTS_A_CHARACTER = 8
"""More than any script or emoji needs; a text of combining marks only is one character to a reader."""


class Keep(Enum):
    """The value that leaves a field unchanged, if None has a meaning of its own."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP


class MemoryFields(TypedDict, total=False):
    """The fields of `NewMemory` beside its scope and statement, as arguments of `lore.memories.add`."""

    kind: MemoryKind
    confidence: float | None
    category: str
    tags: Sequence[str]
    owner: str
    said_by: Sequence[str]
    valid_from: datetime | date | None
    valid_until: datetime | date | None
    sources: Sequence[Source]
    evidence: Sequence[EvidenceRoom]
    memory_id: str | None
    created_at: datetime | None
    updated_at: datetime | None
    made_by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to add.

    `scope`: the subject. `confidence`: in [0, 1], None if unknown. `owner`: the id of the person whom it is about, by
    default the person of a user's scope. `said_by`: the ids of those who said it, beside the senders of the sources.
    `valid_from`, `valid_until`: since when it holds and when it ends: what has ended is neither recalled nor found,
    except by those who ask for the past. A `date` counts whole, in the zone of the setting `time_zone`: from its
    beginning, and until its end. `sources`: the messages that support it. `evidence`: the rooms in which it was
    said, beside those of the sources; a memory without any is for all. `memory_id`: an id of the caller's own makes
    adding it idempotent. `created_at`, `updated_at`: when it was first and last stated, by default now. `made_by`,
    `reason`: for the log.
    """

    scope: str
    statement: str
    kind: MemoryKind = MemoryKind.FACT
    confidence: float | None = None
    category: str = ""
    tags: Sequence[str] = ()
    owner: str = ""
    said_by: Sequence[str] = ()
    valid_from: datetime | date | None = None
    valid_until: datetime | date | None = None
    sources: Sequence[Source] = ()
    evidence: Sequence[EvidenceRoom] = ()
    memory_id: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    made_by: str = "caller"
    reason: str = ""


class MemoryChanges(TypedDict, total=False):
    """The fields of `Edit`, as arguments of `lore.memories.update`."""

    statement: str | None
    confidence: float | Keep | None
    category: str | None
    tags: Sequence[str] | None
    owner: str | None
    said_by: Sequence[str] | None
    valid_from: datetime | date | Keep | None
    valid_until: datetime | date | Keep | None
    sources: Sequence[Source] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The changes to a memory; None keeps a field. A confidence or a time of None removes it.

    `valid_from`, `valid_until`: since when it holds and when it ends; a `date` counts whole.
    """

    statement: str | None = None
    confidence: float | Keep | None = KEEP
    category: str | None = None
    tags: Sequence[str] | None = None
    owner: str | None = None
    said_by: Sequence[str] | None = None
    valid_from: datetime | date | Keep | None = KEEP
    valid_until: datetime | date | Keep | None = KEEP
    sources: Sequence[Source] | None = None


def is_longer(text: str, most: int) -> bool:
    """Return True if the text has more than `most` graphemes."""
    return len(text) > most and (len(text) > most * _CODE_POINTS_A_CHARACTER or graphemes(text) > most)


def normal(statement: str) -> str:
    """Return the form in which statements are compared: folded, white space as one space."""
    return " ".join(fold(statement).split())


def checked(new: NewMemory, zone: tzinfo = UTC) -> NewMemory:
    """Return the memory as it is stored; days are those of the zone. Raises `InvalidInput` that names the fix."""
    begins, ends = _begin(new.valid_from, zone), _end(new.valid_until, zone)
    check_span(begins, ends)
    return replace(
        new,
        scope=check_scope(new.scope),
        statement=check_statement(new.statement),
        kind=check_kind(new.kind),
        confidence=check_confidence(new.confidence),
        category=_label(new.category, "category"),
        tags=check_tags(new.tags),
        owner=_person(new.owner, "owner") or owner_of(new.scope),
        said_by=_people(new.said_by),
        valid_from=begins,
        valid_until=ends,
        sources=check_sources(new.sources),
        evidence=_check_evidence(new.evidence),
        memory_id=None if new.memory_id is None else check_memory_id(new.memory_id),
        created_at=_moment(new.created_at, "created_at"),
        updated_at=_moment(new.updated_at, "updated_at"),
        made_by=_label(new.made_by, "made_by"),
        reason=check_reason(new.reason),
    )


def checked_edit(edit: Edit, zone: tzinfo = UTC) -> Edit:
    """Return the edit as it is stored; days are those of the zone. Raises `InvalidInput`."""
    return Edit(
        statement=None if edit.statement is None else check_statement(edit.statement),
        confidence=KEEP if isinstance(edit.confidence, Keep) else check_confidence(edit.confidence),
        category=None if edit.category is None else _label(edit.category, "category"),
        tags=None if edit.tags is None else check_tags(edit.tags),
        owner=None if edit.owner is None else _person(edit.owner, "owner"),
        said_by=None if edit.said_by is None else _people(edit.said_by),
        valid_from=KEEP if isinstance(edit.valid_from, Keep) else _begin(edit.valid_from, zone),
        valid_until=KEEP if isinstance(edit.valid_until, Keep) else _end(edit.valid_until, zone),
        sources=None if edit.sources is None else check_sources(edit.sources),
    )


def check_span(begins: datetime | None, ends: datetime | None) -> None:
    """Raise `InvalidInput` if a memory would end before it begins."""
    if begins is not None and ends is not None and ends <= begins:
        raise InvalidInput(
            "valid_until_before_valid_from", ends=f"{ends:%Y-%m-%d %H:%M}", begins=f"{begins:%Y-%m-%d %H:%M}"
        )


def check_statement(given: Any) -> str:
    """Return the statement without surrounding white space."""
    text = _text(given, "The statement", MAX_STATEMENT).strip()
    if not text:
        raise InvalidInput("statement_missing")
    return text


def scope_of(given: Any) -> str:
    """Return the scope; a group's id becomes the group's scope. An id that begins like a scope is read as one: write
    'group:user:x' for a group with that id."""
    if not isinstance(given, str) or not given:
        raise InvalidInput("group_invalid", value=f"{given!r:.60}")
    kind, colon, name = given.partition(":")
    return check_scope(given if colon and name and kind in SCOPES else f"group:{given}")


def check_moment(given: Any, name: str = "since") -> datetime | None:
    """Return the time in UTC; one without a zone is UTC. None stays None."""
    return _moment(given, name)


def check_kind(given: Any) -> MemoryKind:
    try:
        return MemoryKind(given)
    except ValueError as error:
        raise InvalidInput(
            "choice_unknown", name="kind", value=f"{given!r:.60}", known=", ".join(MemoryKind)
        ) from error


def check_kinds(given: Any) -> list[MemoryKind]:
    """Return the kinds, each once, in order; a single one may be a text."""
    if not isinstance(given, Iterable):
        raise InvalidInput("kinds_invalid")
    kinds = [given] if isinstance(given, str) else list(given)
    try:
        return sorted({MemoryKind(kind) for kind in kinds})
    except ValueError as error:
        raise InvalidInput("memory_kind_unknown", known=", ".join(MemoryKind), value=f"{given!r:.60}") from error


def check_confidence(given: Any) -> float | None:
    """Return the confidence, in [0, 1]; None stays None, and 0 is 0."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidInput("confidence_invalid", value=f"{given!r:.60}")
    return float(given) + 0.0


def check_strength(given: Any) -> float:
    """Return the strength, in [0, 1]."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise InvalidInput("number_not_share", name="strength", value=f"{given!r:.60}")
    return float(given) + 0.0


def check_tags(given: Any) -> tuple[str, ...]:
    """Return the tags, each once, in order."""
    tags = tuple(dict.fromkeys(_label(tag, "A tag") for tag in _items(given, "tags", "texts")))
    if len(tags) > MAX_TAGS:
        raise InvalidInput("tags_too_many", count=len(tags), most=MAX_TAGS)
    if "" in tags:
        raise InvalidInput("tag_empty")
    return tags


def check_sources(given: Any) -> tuple[Source, ...]:
    """Return the sources, each once, in order."""
    sources = tuple(dict.fromkeys(_source(item) for item in _items(given, "sources", "roomlore.Source")))
    if len(sources) > MAX_SOURCES:
        raise InvalidInput("sources_too_many", count=len(sources), most=MAX_SOURCES)
    return sources


def _person(given: Any, name: str) -> str:
    if not isinstance(given, str) or len(given) > MAX_ID_CHARS:
        raise InvalidInput("person_id_invalid", name=name, value=f"{given!r:.60}", most=MAX_ID_CHARS)
    return given


def _people(given: Any) -> tuple[str, ...]:
    """Return the ids of people, each once, in order."""
    people = tuple(dict.fromkeys(_person(person, "said_by") for person in _items(given, "said_by", "ids of people")))
    if len(people) > MAX_PEOPLE:
        raise InvalidInput("people_too_many", count=len(people), most=MAX_PEOPLE)
    if "" in people:
        raise InvalidInput("person_id_empty")
    return people


def _check_evidence(given: Any) -> tuple[EvidenceRoom, ...]:
    rooms = _items(given, "evidence", "roomlore.EvidenceRoom")
    for room in rooms:
        if not isinstance(room, EvidenceRoom) or not isinstance(room.room_id, str) or not room.room_id:
            raise InvalidInput("evidence_invalid", value=f"{room!r:.80}")
        if not room.first <= room.last:
            raise InvalidInput("evidence_reversed", room=f"{room.room_id!r:.60}")
    return evidence_of((), rooms)


def refuse_unknown(sources: Iterable[Source], there: Container[Source]) -> None:
    """Raise `InvalidInput` that names the sources, three at most, whose messages are not there."""
    unknown = [
        f"{source.message_id[:40]!r} of room {source.room_id[:40]!r}" for source in sources if source not in there
    ]
    if unknown:
        more = Phrase("and_more", count=len(unknown) - _SHOWN) if len(unknown) > _SHOWN else ""
        raise InvalidInput("sources_unknown", messages=", ".join(unknown[:_SHOWN]), more=more)


def check_memory_id(given: Any) -> str:
    if not isinstance(given, str) or not given or "\0" in given:
        raise InvalidInput("memory_id_invalid", value=f"{given!r:.60}")
    if len(given) > MAX_ID_CHARS:
        raise InvalidInput("id_too_long", name="memory_id", count=len(given), most=MAX_ID_CHARS)
    return given


def check_reason(given: Any) -> str:
    return _text(given, "reason", MAX_REASON).strip()


def _source(given: Any) -> Source:
    ids = (given.room_id, given.message_id) if isinstance(given, Source) else ()
    if not ids or not all(isinstance(given_id, str) and 0 < len(given_id) <= MAX_ID_CHARS for given_id in ids):
        raise InvalidInput("source_invalid", value=f"{given!r:.80}", most=MAX_ID_CHARS)
    return Source(*ids)


def _items(given: Any, name: str, what: str) -> list[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput("list_needed", name=name, value=f"{given!r:.60}", what=what)
    return list(given)


def _label(given: Any, name: str) -> str:
    return _text(given, name, MAX_LABEL).strip()


def _text(given: Any, name: str, most: int) -> str:
    if not isinstance(given, str):
        raise InvalidInput("text_needed", name=name, value=f"{given!r:.60}")
    if is_longer(given, most):
        raise InvalidInput("text_too_long", name=name, most=most, value=repr(given[:40]))
    return given


_TIME_OR_DAY = "datetime or a date"


def _begin(given: Any, zone: tzinfo) -> datetime | None:
    return _moment(start_of(given, zone) if is_day(given) else given, "valid_from", _TIME_OR_DAY)


def _end(given: Any, zone: tzinfo) -> datetime | None:
    return _moment(end_of(given, zone) if is_day(given) else given, "valid_until", _TIME_OR_DAY)


def instant(given: date | None) -> datetime | None:
    """Return a time of what was checked, where no day is left."""
    assert given is None or isinstance(given, datetime)
    return given


def _moment(given: Any, name: str, what: str = "datetime") -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise InvalidInput("time_needed", name=name, value=f"{given!r:.60}", what=what)
    try:
        return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput("time_out_of_range", name=name, value=given.isoformat()) from error
