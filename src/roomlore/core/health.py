"""The health of a service: the findings of `roomlore doctor`, whose texts are in the catalogue `doctor`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from roomlore.core.errors import listed
from roomlore.core.moving import MOVING
from roomlore.core.texts import catalogue


@dataclass(frozen=True, slots=True)
class Saying:
    """A text: a key of the catalogue `doctor`, or a backend's own template, and the values of its fields. The key of an
    action to take ends in `.do`."""

    key: str
    values: Mapping[str, object]

    def text(self, language: str = "en") -> str:
        """Return the text in a language; that of a template is the same in all."""
        return catalogue(language, "doctor").get(self.key, self.key).format_map(self.values)


def say(key: str, **values: object) -> Saying:
    return Saying(key, values)


Verdict = Literal["off", "ok", "warn", "fail"]
"""`off`: an optional part that is not set up."""

_ORDER: tuple[Verdict, ...] = ("ok", "warn", "fail")
_SLOW_WRITE_MS = 250.0
_SKEW_SECONDS = 5.0
_MIB = 1024 * 1024
_LITTLE_DISK, _NO_DISK = 1024 * _MIB, 100 * _MIB


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `part`: a backend, or what was checked, in the catalogue under `part.`, perhaps with a
    name behind it, as in `provider near`; `said`: the state found; `todo`: the action to take, None if none; `ms`:
    duration of the check, None if no request was needed."""

    part: str
    verdict: Verdict
    said: Saying
    todo: Saying | None = None
    ms: float | None = None

    @property
    def told(self) -> str:
        """The state in English."""
        return self.said.text()

    @property
    def advice(self) -> str:
        """The action to take in English, '' if none."""
        return self.todo.text() if self.todo else ""


@dataclass(frozen=True, slots=True)
class DatabaseLook:
    """The state of a database, read without changing its schema. `version`: the newest applied migration, None without
    tables; `first`, `head`: the oldest and the newest migration of this code; `write_ms`: duration of a committed
    write, None if none was made; `skew_seconds`: how far its clock is ahead of the local one, None without a clock of
    its own; `has_keys`: True if an API key exists; `attachments_wait`: True if some are to be described; `offers`: the
    vector stores that it has or can be given; `foreign`: the tables of another program, if there are none of roomlore;
    `taken`: those of them that are called as roomlore's own."""

    engine: str
    version: str | None
    first: str
    head: str
    size_bytes: int
    write_ms: float | None = None
    skew_seconds: float | None = None
    has_keys: bool = False
    attachments_wait: bool = False
    offers: frozenset[str] = frozenset()
    foreign: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()


def worst(findings: Iterable[Finding]) -> Verdict:
    """Return the worst verdict; 'ok' if there is none, or only of what is off."""
    return max((finding.verdict for finding in findings if finding.verdict != "off"), key=_ORDER.index, default="ok")


def judge_database(look: DatabaseLook) -> Finding:
    """Return the finding on whether roomlore can use the database."""
    known = {"engine": look.engine, "version": look.version, "mib": look.size_bytes / _MIB}
    if look.taken:
        text = say("database.taken", tables=listed(look.taken), **known)
        return Finding("database", "fail", text, say("database.taken.do"))
    if look.foreign:
        text = say("database.foreign", tables=listed(look.foreign), **known)
        return Finding("database", "warn", text, say("database.foreign.do"))
    if look.version is None:
        return Finding("database", "warn", say("database.new", **known), say("database.new.do"))
    if look.version == MOVING:
        return Finding("database", "fail", say("database.other", **known), say("database.moving.do"))
    if look.version > look.head:
        return Finding("database", "fail", say("database.other", **known), say("database.newer.do"))
    if look.version < look.first:
        return Finding("database", "fail", say("database.other", **known), say("database.unreleased.do"))
    if look.version < look.head:
        return Finding("database", "warn", say("database.other", **known), say("database.older.do", head=look.head))
    written = say("database.written", ms=look.write_ms or 0.0, **known)
    if look.write_ms is not None and look.write_ms > _SLOW_WRITE_MS:
        return Finding("database", "warn", written, say("database.slow.do"))
    return Finding("database", "ok", written)


def judge_integrity(engine: str, faults: Sequence[str]) -> Finding:
    """Return the finding on integrity. `faults`: the engine's own report on its pages."""
    if faults:
        text = say("integrity.damaged", faults="; ".join(faults))
        return Finding("integrity", "fail", text, say("integrity.damaged.do"))
    return Finding("integrity", "ok", say("integrity.sound" if engine == "sqlite" else "integrity.counted"))


def judge_skew(seconds: float) -> Finding:
    """Return the finding on the clock. `seconds`: how far the database's clock is ahead of the local one."""
    text = say("clock.ahead" if seconds >= 0 else "clock.behind", seconds=abs(seconds))
    if abs(seconds) > _SKEW_SECONDS:
        return Finding("clock", "warn", text, say("clock.do"))
    return Finding("clock", "ok", text)


def judge_disk(free_bytes: int) -> Finding:
    """Return the finding on disk space. `free_bytes`: on the volume of the database file."""
    text = say("disk.free", gib=free_bytes / 1024 / _MIB)
    if free_bytes < _NO_DISK:
        return Finding("disk", "fail", text, say("disk.none.do"))
    if free_bytes < _LITTLE_DISK:
        return Finding("disk", "warn", text, say("disk.little.do"))
    return Finding("disk", "ok", text)
