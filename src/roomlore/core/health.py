"""What `roomlore doctor` finds, and how bad it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warn", "fail"]

_ORDER: tuple[Verdict, ...] = ("ok", "warn", "fail")
_SLOW_WRITE_MS = 250.0
_SKEW_SECONDS = 5.0
_MIB = 1024 * 1024
_LITTLE_DISK, _NO_DISK = 1024 * _MIB, 100 * _MIB


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `part`: what; `told`: how it stands; `advice`: what to do, '' where nothing; `ms`:
    how long the look took, None where nothing had to be asked."""

    part: str
    verdict: Verdict
    told: str
    advice: str = ""
    ms: float | None = None


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
    told = f"{look.engine}, schema {look.version or 'none yet'}, {look.size_bytes / _MIB:.1f} MiB"
    if look.version is None:
        return Finding("database", "warn", told, "It is new: the first command that stores something makes its tables.")
    if look.version > look.head:
        return Finding("database", "fail", told, "A newer roomlore wrote it: upgrade roomlore here.")
    if look.version < look.head:
        advice = f"Back it up; the next command that opens it brings it to schema {look.head}."
        return Finding("database", "warn", told, advice)
    told += f", a write took {look.write_ms or 0:.1f} ms"
    if look.write_ms is not None and look.write_ms > _SLOW_WRITE_MS:
        return Finding("database", "warn", told, "Writing is slow: look at the disk and at what else writes there.")
    return Finding("database", "ok", told)


def judge_skew(seconds: float) -> Finding:
    """`seconds`: the database's clock ahead of ours."""
    told = f"the database's clock is {abs(seconds):.1f} s {'ahead of' if seconds >= 0 else 'behind'} this machine's"
    if abs(seconds) > _SKEW_SECONDS:
        return Finding("clock", "warn", told, "Set both machines by NTP: leases and schedules go by the clock.")
    return Finding("clock", "ok", told)


def judge_disk(free_bytes: int) -> Finding:
    """`free_bytes`: where the database file lies."""
    told = f"{free_bytes / 1024 / _MIB:.1f} GiB free beside the database"
    if free_bytes < _NO_DISK:
        return Finding("disk", "fail", told, "Make room now: SQLite stops when the disk is full.")
    if free_bytes < _LITTLE_DISK:
        return Finding("disk", "warn", told, "Make room soon.")
    return Finding("disk", "ok", told)
