"""Every error roomlore raises on purpose.

    RoomloreError
    ├── NotFound              a room, message, context or key that does not exist for this tenant; a LookupError
    ├── InvalidInput          a value the caller can mend; the message says how; a ValueError
    │   └── NameNotId         a person's name, or scope, in place of an id
    ├── Conflict              a stale version, or the same id with other content
    ├── BudgetTooSmall        what must be shown does not fit the tokens given
    ├── BadModelOutput        a model answered something that cannot be used
    ├── Forbidden             the API key is missing, wrong, revoked or lacks the scope
    ├── QuotaExceeded         the tenant has used what it may use for now
    │   └── TokensExceeded    no more tokens of models today; a ModelUnavailable too
    └── Unavailable           something roomlore depends on does not answer
        ├── StorageUnavailable
        ├── VectorsUnavailable
        ├── CacheUnavailable
        ├── ModelUnavailable
        └── TimedOut          it took longer than the settings allow

An error has a code and fields; its text is English, from the catalogues of `roomlore.core.texts`.
"""

import inspect
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from roomlore.core.texts import Phrase, catalogue


class RoomloreError(Exception):
    """Something went wrong in roomlore."""

    def __init__(self, code: str | None = None, /, **fields: object) -> None:
        """Set the text: that of the code with its fields, a `Phrase`, any other text as it is, or by default the
        docstring of the class."""
        text = code or inspect.getdoc(type(self)) or ""
        super().__init__(Phrase(text, **fields) if text in catalogue("en") else text)

    @property
    def code(self) -> str:
        """The code of the text, '' if it has none."""
        return getattr(self.args[0], "code", "")

    @property
    def fields(self) -> Mapping[str, Any]:
        """The values in the text, by name."""
        return getattr(self.args[0], "fields", {})


class NotFound(RoomloreError, LookupError):
    """Nothing with this id exists here."""


class UnknownRoom(NotFound):
    """There is no such room."""

    def __init__(self, code: str | None = None, /, *, room_id: str = "", **fields: object) -> None:
        """Set the id, or the name, that was asked for."""
        super().__init__(code, **fields)
        self.room_id = room_id


class Deleted(NotFound):
    """It was deleted."""


class InvalidInput(RoomloreError, ValueError):
    """The input cannot be used as it is."""


class NameNotId(InvalidInput):
    """Give the id of the person, not a name."""


class Conflict(RoomloreError):
    """The stored state differs from what the call expected."""


class BudgetTooSmall(RoomloreError):
    """The token budget cannot hold what must be shown."""


class BadModelOutput(RoomloreError):
    """The model's answer cannot be used."""


class Forbidden(RoomloreError):
    """This needs a valid API key with the right scope."""


class QuotaExceeded(RoomloreError):
    """The tenant has used what it may use for now."""

    def __init__(
        self,
        code: str | None = None,
        /,
        *,
        limit: str = "",
        used: int = 0,
        most: int = 0,
        resets_at: datetime | None = None,
        wait_seconds: float | None = None,
        **fields: object,
    ) -> None:
        """Set the limit that was reached, such as `messages_a_day`, how much is used of how much, when it is reset, and
        the seconds until then; None if it is not reset by time."""
        super().__init__(code, **fields)
        self.limit = limit
        self.used = used
        self.most = most
        self.resets_at = resets_at
        self.wait_seconds = wait_seconds


class Unavailable(RoomloreError):
    """A service roomlore depends on does not answer."""


class StorageUnavailable(Unavailable):
    """The database does not answer."""


class StorageDamaged(StorageUnavailable):
    """The database's own pages cannot be read."""


class StorageBusy(StorageUnavailable):
    """The database answers, and somebody else's large write takes it for longer than one waits."""


class VectorsUnavailable(Unavailable):
    """The vector index does not answer."""


class CacheUnavailable(Unavailable):
    """The cache does not answer."""


Cause = Literal["unreachable", "dropped", "timeout", "refused", "limited", "broken"]


class ModelUnavailable(Unavailable):
    """No model provider answers."""

    def __init__(
        self,
        code: str | None = None,
        /,
        *,
        cause: Cause = "broken",
        wait_seconds: float | None = None,
        **fields: object,
    ) -> None:
        """Set the reason, and the wait that the provider asks for, infinity if waiting does not help.

        `cause`: the request never arrived (unreachable), the connection broke after it may have arrived (dropped), too
        late (timeout), a request that the provider rejects (refused), too many requests (limited), or a provider error
        or unreadable answer (broken).
        """
        super().__init__(code, **fields)
        self.cause: Cause = cause
        self.wait_seconds = wait_seconds


class TokensExceeded(QuotaExceeded, ModelUnavailable):
    """The tenant has used the tokens of models that it may use today."""

    cause: Cause = "limited"


class TimedOut(Unavailable):
    """It took longer than the settings allow."""


def unknown_room(room_id: str, *, viewed: bool = False) -> UnknownRoom:
    """Return the error about a room that does not exist. `viewed`: it is told to a viewer, in the same words if the
    room is there and the viewer may not see it."""
    code = "room_unknown_to_viewer" if viewed else "room_unknown"
    return UnknownRoom(code, room=repr(room_id), room_id=room_id)


def unknown_conversation(conversation_id: str) -> NotFound:
    """Return the error about a conversation that does not exist."""
    return NotFound("conversation_unknown", conversation=repr(conversation_id))


MOST_LISTED = 5


def listed(ids: Sequence[str]) -> str:
    """Return the first five ids as an error lists them, with '...' if there are more."""
    return ", ".join(ids[:MOST_LISTED]) + (", ..." if len(ids) > MOST_LISTED else "")


def several_ids(part: str, ids: Sequence[str]) -> InvalidInput:
    """Return the error about a part of an id that several ids begin or end with."""
    return InvalidInput("ids_several", part=f"{part!r:.80}", known=listed(ids))


def describe(error: BaseException) -> str:
    """Return an error as text for a log: roomlore's own errors with their message, others by type, since their text may
    quote a message."""
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, RoomloreError) else name
