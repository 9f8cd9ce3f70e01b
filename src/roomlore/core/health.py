"""What `roomlore doctor` finds, and how bad it is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from roomlore.core.health_words import SAYINGS, Saying, say

Verdict = Literal["ok", "warn", "fail"]

_ORDER: tuple[Verdict, ...] = ("ok", "warn", "fail")
_SLOW_WRITE_MS = 250.0
_SKEW_SECONDS = 5.0
_MIB = 1024 * 1024
_LITTLE_DISK, _NO_DISK = 1024 * _MIB, 100 * _MIB


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `part`: what, one of `PARTS`; `said`: how it stands; `todo`: what to do, None where
    nothing; `ms`: how long the look took, None where nothing had to be asked."""

    part: str
    verdict: Verdict
    said: Saying
    todo: Saying | None = None
    ms: float | None = None

    @property
    def told(self) -> str:
        """How it stands, in English."""
        return self.said.by(SAYINGS)

    @property
    def advice(self) -> str:
        """What to do, in English; '' where nothing."""
        return self.todo.by(SAYINGS) if self.todo else ""


@dataclass(frozen=True, slots=True)
class DatabaseLook:
    """A database as it is, looked at without changing its schema. `version`: the newest migration it has had, None
    where it has no tables yet; `head`: the newest this code knows; `write_ms`: how long a committed write took, None
    where none was made; `skew_seconds`: its clock ahead of ours, None where it has none of its own; `has_keys`: whether
    an API key exists; `has_pgvector`: whether the extension is there or can be made."""

    engine: str
    version: str | None
    head: str
    size_bytes: int
    write_ms: float | None = None
    skew_seconds: float | None = None
    has_keys: bool = False
    has_pgvector: bool = False


def worst(findings: Iterable[Finding]) -> Verdict:
    """The verdict of all together; 'ok' for none."""
    return max((finding.verdict for finding in findings), key=_ORDER.index, default="ok")


def judge_database(look: DatabaseLook) -> Finding:
    """Whether roomlore can work on it."""
    known = {"engine": look.engine, "version": look.version, "mib": look.size_bytes / _MIB}
    if look.version is None:
        return Finding("database", "warn", say("database.new", **known), say("database.new.do"))
    if look.version > look.head:
        return Finding("database", "fail", say("database.other", **known), say("database.newer.do"))
    if look.version < look.head:
        return Finding("database", "warn", say("database.other", **known), say("database.older.do", head=look.head))
    written = say("database.written", ms=look.write_ms or 0.0, **known)
    if look.write_ms is not None and look.write_ms > _SLOW_WRITE_MS:
        return Finding("database", "warn", written, say("database.slow.do"))
    return Finding("database", "ok", written)


def judge_integrity(engine: str, faults: Sequence[str]) -> Finding:
    """`faults`: what the engine says of its own pages."""
    if faults:
        said = say("integrity.damaged", faults="; ".join(faults))
        return Finding("integrity", "fail", said, say("integrity.damaged.do"))
    return Finding("integrity", "ok", say("integrity.sound" if engine == "sqlite" else "integrity.counted"))


def judge_skew(seconds: float) -> Finding:
    """`seconds`: the database's clock ahead of ours."""
    said = say("clock.ahead" if seconds >= 0 else "clock.behind", seconds=abs(seconds))
    if abs(seconds) > _SKEW_SECONDS:
        return Finding("clock", "warn", said, say("clock.do"))
    return Finding("clock", "ok", said)


def judge_disk(free_bytes: int) -> Finding:
    """`free_bytes`: where the database file lies."""
    said = say("disk.free", gib=free_bytes / 1024 / _MIB)
    if free_bytes < _NO_DISK:
        return Finding("disk", "fail", said, say("disk.none.do"))
    if free_bytes < _LITTLE_DISK:
        return Finding("disk", "warn", said, say("disk.little.do"))
    return Finding("disk", "ok", said)
