"""Checks of what callers hand in: a batch of messages, its duplicates and conflicts, missing times, page numbers."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from json.encoder import encode_basestring_ascii
from typing import Any

from roomlore.core.attachments import as_submitted, lasting
from roomlore.core.audience import BEGINNING
from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.records import Parsed, Record, check_metadata, parse_time
from roomlore.core.texts import Phrase

HASH_DIGITS = 32
_Metadata = Mapping[str, Any]


def content_hash(message: Message, counted: Callable[[_Metadata], _Metadata] = lasting) -> str:
    """Return the first half of the SHA-256 (`HASH_DIGITS` hex digits) of what the caller gave and what lasts.

    Arrival, tokens, edits, attachments, reactions and pins do not count, and a `sent_at` that the caller did not give
    counts as missing, so a stored message has the same hash as the submitted one. A naive time counts as UTC. Raises
    `InvalidInput` if the metadata is not JSON. `counted`: `as_submitted` gives the hash of earlier versions.
    """
    try:
        canonical = _canonical(message, counted)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput("message_metadata_not_json", message=repr(message.id), why=exc) from exc
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:HASH_DIGITS]


_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _canonical(message: Message, counted: Callable[[_Metadata], _Metadata]) -> str:
    """Return the message as a JSON list, with its topic if it has one. The encoder of whole lists would be several
    times as slow."""
    quoted = encode_basestring_ascii
    reply_to, root_id, turn_id, mentions = message.reply_to, message.root_id, message.turn_id, message.mentions
    topic = "" if message.topic_id is None else f",{quoted(message.topic_id)}"
    return (
        f"[{_said_at(message)},{quoted(message.id)},{quoted(message.room_id)},{quoted(message.sender_id)},"
        f"{quoted(message.sender_name)},{quoted(message.role)},{quoted(message.text)},"
        f"{'null' if reply_to is None else quoted(reply_to)},{'null' if root_id is None else quoted(root_id)},"
        f"[{','.join(map(quoted, mentions)) if mentions else ''}],{'true' if message.has_tool_calls else 'false'},"
        f"{'null' if turn_id is None else quoted(turn_id)},"
        f"{_ENCODE(dict(counted(message.metadata))) if message.metadata else '{}'}{topic}]"
    )


def _said_at(message: Message) -> str:
    at = message.sent_at
    if at is None or is_estimated(message):
        return "null"
    return f'"{_utc(at).isoformat()}"'


def _utc(at: datetime) -> datetime:
    if at.tzinfo is UTC:
        return at
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


_MAX = 2**63 - 1


MAX_ROOM_NAME = 200


def check_room_name(name: str) -> str:
    """Return the name of a room without space around it. Raises `InvalidInput`."""
    if not isinstance(name, str) or len(name.strip()) > MAX_ROOM_NAME:
        raise InvalidInput("room_name_invalid", value=f"{name!r:.60}", most=MAX_ROOM_NAME)
    return " ".join(name.split())


def check_page(*, limit: int, after: int = 0) -> None:
    """Raise `InvalidInput` unless `limit` is a whole number from 1 and `after` one from 0, neither above 2**63 - 1."""
    for name, value, least in (("limit", limit, 1), ("after", after, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MAX:
            raise InvalidInput("number_outside", name=name, value=repr(value), least=least, most=_MAX)


MAX_QUERY_CHARS = 20_000
MAX_HITS = 200


def check_query(query: str, *, limit: int) -> None:
    """Raise `InvalidInput` unless messages or memories can be searched for this."""
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("query_empty")
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidInput("query_too_long", count=len(query), most=MAX_QUERY_CHARS)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_HITS:
        raise InvalidInput("number_to_give_from_one", name="limit", value=repr(limit), most=MAX_HITS)


MAX_ID_CHARS = 512
_ROLES = tuple(role.value for role in Role)
_NULLABLE = ("reply_to", "root_id", "topic_id", "turn_id")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call: characters of a text, messages of a batch."""

    text_chars: int = 1_048_576
    batch_messages: int = 10_000


METADATA_CHARS = 262_144
"""Longest metadata of a message and state of a session, in characters of JSON: it is read with every message."""


@dataclass(slots=True)
class Intake:
    """A sorted batch of one room; `fresh` in the order given. `gone`: ids of messages that were deleted or archived."""

    fresh: list[Message] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)

    @property
    def result(self) -> "IntakeResult":
        """Return the ids of the messages by what becomes of them."""
        return IntakeResult(
            added=tuple(message.id for message in self.fresh),
            duplicates=tuple(self.duplicates),
            gone=tuple(self.gone),
            conflicts=tuple(self.conflicts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeResult:
    """The ids of one room's messages of a batch, by what became of them. `gone`: messages that were deleted or
    archived, which are not stored again."""

    added: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()

    def __add__(self, more: "IntakeResult") -> "IntakeResult":
        return IntakeResult(
            added=self.added + more.added,
            duplicates=self.duplicates + more.duplicates,
            gone=self.gone + more.gone,
            conflicts=self.conflicts + more.conflicts,
        )


def check(messages: Sequence[Message], limits: Limits) -> None:
    """Raise `InvalidInput` naming the first message that cannot be stored and the fix."""
    if len(messages) > limits.batch_messages:
        raise InvalidInput("batch_too_large", count=len(messages), most=limits.batch_messages)
    for place, message in enumerate(messages):
        if not isinstance(message, Message):
            raise InvalidInput("batch_item_invalid", place=place, kind=type(message).__name__)
        _check_ids(message, place)
        _check_types(message)
        if len(message.text) > limits.text_chars:
            raise InvalidInput(
                "message_text_too_long", message=repr(message.id), count=len(message.text), most=limits.text_chars
            )
        _check_metadata(message)


def _check_ids(message: Message, place: int) -> None:
    for name in ("id", "room_id", "sender_id"):
        value = getattr(message, name)
        if not isinstance(value, str) or not value:
            raise InvalidInput("message_id_missing", message=place, field=name, value=repr(value))
    for name in ("id", "room_id", "sender_id", "reply_to", "root_id", "topic_id", "turn_id", "sender_name"):
        value = getattr(message, name)
        if value is None and name in _NULLABLE:
            continue
        if not isinstance(value, str):
            raise _wrong(message, name, Phrase("wanted_text"))
        if len(value) > MAX_ID_CHARS:
            raise InvalidInput(
                "message_id_too_long", name=name, message=repr(message.id[:40]), count=len(value), most=MAX_ID_CHARS
            )


def _check_types(message: Message) -> None:
    if not isinstance(message.text, str):
        raise _wrong(message, "text", Phrase("wanted_text_maybe_empty"))
    if message.sent_at is not None and not isinstance(message.sent_at, datetime):
        raise _wrong(message, "sent_at", Phrase("wanted_datetime_or_none"))
    if message.sent_at is not None and parse_time(message.sent_at) is None:
        raise _wrong(message, "sent_at", Phrase("wanted_years"))
    if message.role not in _ROLES:
        raise _wrong(message, "role", Phrase("wanted_one_of", known=", ".join(_ROLES)))
    if not isinstance(message.mentions, list | tuple) or not all(
        isinstance(mention, str) for mention in message.mentions
    ):
        raise _wrong(message, "mentions", Phrase("wanted_tuple_of_ids"))
    if not isinstance(message.has_tool_calls, bool):
        raise _wrong(message, "has_tool_calls", Phrase("wanted_boolean"))
    if not isinstance(message.metadata, Mapping):
        raise _wrong(message, "metadata", Phrase("wanted_mapping"))
    if isinstance(message, StoredMessage):
        _check_heard(message)


def _check_heard(message: StoredMessage) -> None:
    since, until = message.heard_from, message.heard_until
    if since is None and until is None:
        return
    times = [moment for moment in (since, until) if isinstance(moment, datetime) and moment.tzinfo is not None]
    if len(times) < 2 or times[0] > times[1] or not message.sent_at_estimated:
        raise _wrong(message, "heard_from", Phrase("wanted_heard_times"))


def _wrong(message: Message, name: str, wanted: str) -> InvalidInput:
    shown = repr(getattr(message, name))[:60]
    return InvalidInput(
        "message_value_not_allowed", name=name, message=repr(message.id[:40]), value=shown, allowed=wanted
    )


def _check_metadata(message: Message) -> None:
    if not message.metadata:
        return
    try:
        check_metadata(dict(message.metadata))
        size = len(json.dumps(message.metadata, ensure_ascii=False, allow_nan=False))
    except InvalidInput as error:
        raise InvalidInput("message_part_invalid", message=repr(message.id), error=error) from error
    except (TypeError, ValueError) as error:
        raise InvalidInput("metadata_not_json", message=repr(message.id), why=error) from error
    if size > METADATA_CHARS:
        raise InvalidInput("metadata_too_large", message=repr(message.id), size=size, most=METADATA_CHARS)


def is_estimated(message: Message) -> bool:
    """Return True if the message's time was estimated by the store. One that is flagged because it lay ahead was
    given."""
    return isinstance(message, StoredMessage) and message.sent_at_estimated and not message.is_ahead


def normalised(message: Message) -> Message:
    """Return the message with an aware `sent_at` in UTC (a naive time is UTC already), a `Role` and a tuple of
    mentions."""
    at = message.sent_at
    if at is not None and at.tzinfo is not UTC:
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    elif isinstance(message.role, Role) and isinstance(message.mentions, tuple):
        return message
    return replace(message, sent_at=at, role=Role(message.role), mentions=tuple(message.mentions))


def sort_out(messages: Iterable[Message], known: Mapping[str, str]) -> Intake:
    """Split one room's messages by what is stored: `known` maps taken ids to content hashes ('' for deleted and
    archived ones).

    A deleted message's id stays taken, so that importing the same export again does not restore it.
    """
    intake, first = Intake(), dict[str, Message]()
    for message in map(normalised, messages):
        before = known.get(message.id)
        if before is None and message.id in first:
            before = content_hash(first[message.id])
        if before is None:
            first[message.id] = message
            intake.fresh.append(message)
        elif not before:
            intake.gone.append(message.id)
        elif before == content_hash(message) or (message.metadata and before == content_hash(message, as_submitted)):
            intake.duplicates.append(message.id)
        else:
            intake.conflicts.append(message.id)
    return intake


def carried(record: Record | Parsed) -> Message:
    """Return the message of an export or an archive with what only a store can know of it."""
    return _stored(record) if record.sent_at_estimated or record.edited_at is not None else record.message


def _stored(record: Record | Parsed) -> StoredMessage:
    since, until = record.heard or (None, None)
    return StoredMessage(
        **{field_.name: getattr(record.message, field_.name) for field_ in fields(Message)},
        arrival=0,
        sent_at_estimated=record.sent_at_estimated,
        edited_at=record.edited_at,
        heard_from=since,
        heard_until=until,
    )


AHEAD = timedelta(days=1)
"""A time that is further ahead is not believed."""


def heard_at(message: Message, now: datetime) -> datetime | None:
    """Return when the message was certainly sent; None if nobody knows."""
    if isinstance(message, StoredMessage) and message.sent_at_estimated:
        return message.heard_until if message.heard_from == message.heard_until else None
    at = normalised(message).sent_at
    return None if at is None or at > now + AHEAD else at


def said_within(message: Message) -> tuple[datetime | None, datetime | None]:
    """Return from when until when a message of an import was sent, as far as that is known."""
    if isinstance(message, StoredMessage) and message.heard_until is not None:
        return message.heard_from, message.heard_until
    return message.sent_at, message.sent_at


class Estimates:
    """The times of the messages of an export that have none that can be believed: between the certain ones before and
    after them in their rooms."""

    def __init__(self) -> None:
        self._last: dict[str, datetime] = {}
        self.made = 0

    def fill(self, messages: Iterable[Message], now: datetime) -> list[Message]:
        """Return the next messages of the export with their times. What follows is looked for in the same batch; else
        a message was said before now."""
        batch = list(messages)
        following, after = dict[str, datetime](), list[datetime | None]()
        for message in reversed(batch):
            after.append(following.get(message.room_id))
            if (at := heard_at(message, now)) is not None:
                following[message.room_id] = at
        return [self._filled(message, now, until) for message, until in zip(batch, reversed(after), strict=True)]

    def _filled(self, message: Message, now: datetime, until: datetime | None) -> Message:
        if (at := heard_at(message, now)) is not None:
            self._last[message.room_id] = at
            return message
        if isinstance(message, StoredMessage) and message.heard_until is not None:
            return message
        self.made += 1
        given, flagged = normalised(message).sent_at, isinstance(message, StoredMessage) and message.sent_at_estimated
        since, end = self._last.get(message.room_id), until or now
        if since is not None and since > end:  # The times run backwards here.
            since, end = end, now
        elif since is None and until is not None:
            since = BEGINNING
        if given is not None and flagged:
            since, end = min(since or given, given), max(end, given)
        at = given or (None if since == BEGINNING else since)
        stored = message if isinstance(message, StoredMessage) else _stored(Record(message=message))
        return replace(stored, sent_at=at, sent_at_estimated=True, heard_from=since, heard_until=end)


def as_stored(
    message: Message, *, arrival: int, tokens: int, previous: StoredMessage | None, now: datetime
) -> StoredMessage:
    """Return the message with its arrival. One without a time is sent now, or, in an import, at the time of `previous`,
    the message before it in the room; one more than a day ahead keeps its time and is flagged. The mapping of metadata
    is copied, as the caller may change its own; the values in it are not."""
    at, since, until = _times(message, previous, now)
    return StoredMessage(
        id=message.id,
        room_id=message.room_id,
        sender_id=message.sender_id,
        text=message.text,
        sent_at=at,
        sender_name=message.sender_name,
        role=message.role,
        reply_to=message.reply_to,
        root_id=message.root_id,
        topic_id=message.topic_id,
        mentions=message.mentions,
        has_tool_calls=message.has_tool_calls,
        turn_id=message.turn_id,
        metadata=dict(message.metadata),
        arrival=arrival,
        sent_at_estimated=until is not None,
        tokens=tokens,
        edited_at=message.edited_at if isinstance(message, StoredMessage) else None,
        heard_from=since,
        heard_until=until,
    )


_Times = tuple[datetime, datetime | None, datetime | None]


def _times(message: Message, previous: StoredMessage | None, now: datetime) -> _Times:
    """Return when a message was sent, and from when until when it was heard if that is an estimate."""
    at = message.sent_at
    if not isinstance(message, StoredMessage) or not message.sent_at_estimated:
        if at is None:
            return now, now, now
        return (at, now, now) if at > now + AHEAD else (at, None, None)
    if message.heard_until is None:
        at = at or now
        return at, min(at, now), max(at, now)
    since, until = message.heard_from, message.heard_until
    before = None if previous is None else previous.heard_from or previous.at
    if since is None or since == BEGINNING:
        since = before if before is not None and before <= until else since or until
    return at or (until if since == BEGINNING else since), since, until
