"""What a move of a whole store copies, and in which rows two stores differ: pure functions over rows in the order of
their keys."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

from roomlore.core.json_values import in_json

MOVING = "moving"
"""The stamp of a database that a move is filling, in place of a revision."""
Row = tuple[Any, ...]
"""The values of a row, those of its key first."""
Key = tuple[Any, ...]

_EACH = 8
"""One row of so many is weighed."""
_ROWS_A_SECOND = 12_000
"""About so many rows a second are copied and compared, indexes included; for an estimate."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a table moves. `idle`: its columns that name who works on a row just now; they are empty at the target.
    `left`: why the table is not copied; '' if it is."""

    idle: tuple[str, ...] = ()
    left: str = ""


_WAYS = (
    ("rooms messages message_features link_corrections thread_titles participants room_members keyword_counts", Way()),
    ("context_usage_records api_keys signing_keys tenant_limits tenant_counts archives import_positions", Way()),
    ("message_words index_states vector_collections vector_scopes vectors sessions checkpoints", Way()),
    ("memory_scopes memories memory_sources memory_changes memory_snapshots evolutions watermarks", Way()),
    ("index_outbox memory_outbox", Way(idle=("leased_until", "lease"))),
    ("rooms_due", Way(idle=("leased_until",))),
    ("leases", Way(left="They say who is at work just now, and end by themselves.")),
)
WAYS: Mapping[str, Way] = {name: way for names, way in _WAYS for name in names.split()}
"""Every table of the schema, in an order in which those of a row's foreign keys come first. `message_words` and
`vectors` are written in the form of the target; the index of words follows from the first."""
OWN = ("rooms", "memory_scopes", "api_keys", "context_usage_records", "tenant_limits", "archives", "evolutions")
"""A database with rows in one of these has been used, and nothing is moved into it."""
BESIDE: Mapping[str, str] = {
    "running jobs": "What is due for rooms and people is copied and begun again; repeat an unfinished import.",
    "files of archives": "They stay in the folder of the setting archive_folder, which the new place must reach too.",
    "vectors kept elsewhere": "They stay there and fit the new database, since rooms and messages keep their numbers.",
}
"""What a store has beside its tables, and why it is not copied."""


@dataclass(slots=True)
class Differences:
    """`gone`: the keys of the target's rows to be deleted, those of changed ones among them. `stretches`: the first and
    the last key of neighbouring rows of the source to be copied then."""

    gone: list[Key] = field(default_factory=list)
    stretches: list[tuple[Key, Key]] = field(default_factory=list)
    copies: int = 0
    """The number of rows in the stretches."""
    _grows: bool = False

    @property
    def rows(self) -> int:
        """The number of rows that are missing, changed or surplus."""
        return max(len(self.gone), self.copies)

    def copy(self, key: Key) -> None:
        if self._grows:
            self.stretches[-1] = (self.stretches[-1][0], key)
        else:
            self.stretches.append((key, key))
        self.copies, self._grows = self.copies + 1, True

    def same(self) -> None:
        """End a stretch: the source's next row is at the target as it is."""
        self._grows = False


def differences(source: Iterable[Sequence[Row]], target: Iterable[Sequence[Row]], *, key: int) -> Differences:
    """Return how the target's rows differ from the source's. Both come in pages, in ascending order of their keys, the
    first `key` values."""
    between, ours, theirs = Differences(), chain.from_iterable(source), chain.from_iterable(target)
    row, other = next(ours, None), next(theirs, None)
    while row is not None or other is not None:
        if row == other:
            between.same()
            row, other = next(ours, None), next(theirs, None)
            continue
        first = min(its[:key] for its in (row, other) if its is not None)
        if other is not None and other[:key] == first:
            between.gone.append(first)
            other = next(theirs, None)
        if row is not None and row[:key] == first:
            between.copy(first)
            row = next(ours, None)
    return between


def batches(pages: Iterable[Sequence[Row]], *, rows: int, size: int) -> Iterator[list[Row]]:
    """Yield the rows of the pages in batches of about so many rows, or fewer whose texts and bytes have about this
    size, by some of them."""
    batch: list[Row] = []
    weight = 0
    for page in pages:
        batch += page
        weight += _EACH * sum(len(value) for row in page[::_EACH] for value in row if isinstance(value, (str, bytes)))
        if len(batch) >= rows or weight >= size:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """What a move would do. `rows`: of each table that is copied. `left`: what is not copied, and why."""

    source: str
    target: str
    rows: Mapping[str, int]
    bytes: int
    minutes: float
    left: Mapping[str, str]
    notices: tuple[str, ...]


OTHERS = "{count} other programs are connected to the target. End servers that run on it, and start them afterwards."
OLDER = "The source was written by an earlier roomlore: rows are counted as they are. The move itself updates it first."


def left() -> dict[str, str]:
    """Return what is not copied, and why."""
    return {name: way.left for name, way in WAYS.items() if way.left} | dict(BESIDE)


def minutes(rows: Mapping[str, int]) -> float:
    """Return about how long it takes to move so many rows."""
    return round(sum(rows.values()) / _ROWS_A_SECOND / 60, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveReport:
    """The result of a move. `rows`: of each table, at the source and at the target. `stands_at`: the target is as the
    source was then. `newer`: the source was changed since. `rounds`: how often the two were compared. `caught_up`: how
    many rows these rounds copied or deleted. `faults`: what `verify` found, by side and tenant. `unlike`: the tables
    with other numbers of rows."""

    source: str
    target: str
    rows: Mapping[str, tuple[int, int]]
    stands_at: datetime
    newer: bool
    rounds: int
    caught_up: int
    copied: int
    seconds: float
    faults: Mapping[str, Mapping[str, Sequence[str]]]
    left: Mapping[str, str]
    notices: tuple[str, ...]

    @property
    @in_json
    def unlike(self) -> tuple[str, ...]:
        return tuple(name for name, (there, here) in self.rows.items() if there != here)

    @property
    @in_json
    def sound(self) -> bool:
        """True if the numbers of rows are the same and `verify` found no fault on either side."""
        return not self.unlike and not any(any(found.values()) for found in self.faults.values())
