"""The health of a service: the findings of `roomlore doctor` and their texts.

Texts are by key, English here; translations have the same keys and fields.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from roomlore.core.errors import listed

PARTS = frozenset(
    {
        "attachments", "clock", "database", "disk", "embedder", "extras", "integrity", "keys", "linker", "model",
        "models", "oauth", "provider", "providers", "schedule", "settings", "vectors", "work",
    }
)  # fmt: skip
"""The parts that are checked, beside the backends, whose parts are their names. If there are several of a kind, a name
follows, as in `provider near`."""

SAYINGS: Final[Mapping[str, str]] = {
    "settings.some": "{count} set ({sources})",
    "settings.none": "all as they ship",
    "settings.some.strange": "{count} set ({sources}); no settings of roomlore: {strange}",
    "settings.none.strange": "all as they ship; no settings of roomlore: {strange}",
    "settings.strange.do": "Unset these variables, or mend their names.",
    "extras.some": "in use by these settings: {used}; packages are there for: {there}",
    "extras.none": "installed: none",
    "extras.some.missing": "installed: {there}; missing for these settings: {missing}",
    "extras.none.missing": "installed: none; missing for these settings: {missing}",
    "extras.missing.do": "pip install 'roomlore[{extras}]'",
    "database.memory": "in memory: all is gone when the process ends",
    "database.memory.do": "Set database_url to a file or a PostgreSQL to keep anything.",
    "database.new": "{engine}, schema none yet, {mib:.1f} MiB",
    "database.new.do": "It is new: the first command that stores something makes its tables. If you have data, check"
    " the name.",
    "database.foreign": "{engine}, tables of another program: {tables}; none of roomlore, {mib:.1f} MiB",
    "database.foreign.do": "The first command that stores something makes roomlore's tables beside them. If you have"
    " data, check the name.",
    "database.taken": "{engine}, tables of another program that are called as roomlore's own: {tables}; {mib:.1f} MiB",
    "database.taken.do": "Name another database, or, on PostgreSQL, connect as a role whose search_path begins with"
    " another schema.",
    "database.other": "{engine}, schema {version}, {mib:.1f} MiB",
    "database.newer.do": "A newer roomlore wrote it: upgrade roomlore here.",
    "database.older.do": "Back it up; the next command that opens it brings it to schema {head}.",
    "database.unreleased.do": "A roomlore of before the first release wrote it: open it once with the roomlore of"
    " commit 526591a, then with this one.",
    "database.written": "{engine}, schema {version}, {mib:.1f} MiB, a write took {ms:.1f} ms",
    "database.slow.do": "Writing is slow: look at the disk and at what else writes there.",
    "integrity.sound": "every page was read and is sound",
    "integrity.counted": "no page has failed its checksum",
    "integrity.damaged": "damaged: {faults}",
    "integrity.damaged.do": "Stop roomlore, keep this database aside, and bring back the last sound backup.",
    "integrity.late": "not read to the end within {seconds:g} s",
    "integrity.late.do": "Give it more time: `roomlore doctor --timeout 600`.",
    "linker.compiled": "compiled ({form})",
    "linker.numpy": "in numpy",
    "linker.numpy.do": "pip install 'roomlore[kernel]' adds messages in half the processor time.",
    "linker.off": "in numpy, as link_kernel says",
    "linker.other": "in numpy: roomlore-kernel is that of another version or platform",
    "linker.other.do": "pip install --force-reinstall 'roomlore[kernel]'",
    "clock.ahead": "the database's clock is {seconds:.1f} s ahead of this machine's",
    "clock.behind": "the database's clock is {seconds:.1f} s behind this machine's",
    "clock.do": "Set both machines by NTP: leases and schedules go by the clock.",
    "disk.free": "{gib:.1f} GiB free beside the database",
    "disk.none.do": "Make room now: SQLite stops when the disk is full.",
    "disk.little.do": "Make room soon.",
    "vectors.none": "vectors is {name}, which this database has not",
    "vectors.none.do": "Install {name} on the database's server, or set vectors to auto.",
    "vectors.off": "not used: vectors lie in the database",
    "vectors.idle": "not used: embeddings is off",
    "vectors.idle.do": "Set embeddings, or unset what names this store.",
    "vectors.empty": "answers; holds no messages yet, they are indexed behind",
    "keys.none": "{host} can be reached from other machines and no API key exists",
    "keys.none.do": "Make one with `roomlore keys create NAME`; serving refuses else.",
    "work.left": "kept by {engine} beside the database; some waits or runs",
    "work.none": "kept by {engine} beside the database; none waits",
    "work.left.do": "See that a `roomlore worker` runs: the server leaves the work to it.",
    "work.process": "kept in each process alone; one that is killed begins it anew from the data",
    "work.process.do": "Install the extra `durable`, so that processes share the work.",
    "attachments.off": "no model reads attachments (caption_model, transcript_model)",
    "attachments.on": "models put attachments into words: {kinds}",
    "attachments.mute": "no provider of {models} has a key, so attachments are not put into words",
    "attachments.mute.do": "Set it: `roomlore models --internal` names the variable.",
    "attachments.wait": "some attachments wait to be put into words",
    "attachments.wait.do": "If they wait for long, `roomlore jobs --kind attachments` says why.",
    "schedule.off": "groups evolve only when asked to (evolve_schedule is empty)",
    "schedule.next": "groups evolve next at {at} ({zone})",
    "embedder.quiet": "{embedder}; not asked here",
    "embedder.off": "search goes by words (setting embeddings)",
    "embedder.answers": "{name}, {dimensions} dimensions",
    "cache.off": "not used: sessions are read from the database",
    "prompts.off": "not used: prompts are those that ship",
    "prompts.answer": "answers; has prompt {name}",
    "prompts.without": "answers; has no prompt {name}",
    "reports.off": "not used: errors are only written to the log",
    "reports.answer": "{host} answers; it is told of errors nobody foresaw",
    "backend.off": "not used",
    "backend.answers": "answers",
    "provider.keyless": "no key in {variable}; it is not asked",
    "providers.builtin": "no language model is configured: memories and summaries consist of sentences from the rooms",
    "providers.builtin.do": "To have memories written by a model, set one of {variables}.",
    "provider.keyless.do": "Set {variable} to use it.",
    "provider.answers": "can be reached",
    "provider.keyed": "can be reached; {variable} is set",
    "model.answers": "{provider}: answered",
    "model.fails": "{provider}: {error}",
    "model.fails.do": "`roomlore models test` asks again.",
    "oauth.answers": "{issuer} answers, public keys: {keys}; tokens must be for {resource}",
    "oauth.pkce.do": "Turn on PKCE with S256 there: its metadata does not name it, and hosts of MCP then refuse to sign"
    " in.",
    "oauth.scopes.do": "Add these scopes there: {scopes}.",
    "look.late": "no answer within {seconds:g} s",
    "look.late.do": "Check that it runs and is not overloaded, and the network between.",
    "look.slow.do": "It is slow (over {ms:g} ms): look at its load and the network between.",
    "look.refused": "{error}",
    "look.refused.do": "Mend the setting.",
    "look.failed": "{error}",
    "look.failed.do": "Mend what it names; then run this again.",
    "look.broken": "{error}",
    "look.broken.do": "This is not foreseen: report it, with how to see it again.",
}
"""The state found; under a key that ends in `.do`, the action to take."""


@dataclass(frozen=True, slots=True)
class Saying:
    """A text: a key of `SAYINGS`, or a backend's own template, and the values of its fields."""

    key: str
    values: Mapping[str, object]

    def by(self, words: Mapping[str, str]) -> str:
        """Return the text in the language of these words, or a template as it is."""
        return words.get(self.key, self.key).format_map(self.values)


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
    """The result of one check. `part`: one of `PARTS` or a backend; `said`: the state found; `todo`: the action to
    take, None if none; `ms`: duration of the check, None if no request was needed."""

    part: str
    verdict: Verdict
    said: Saying
    todo: Saying | None = None
    ms: float | None = None

    @property
    def told(self) -> str:
        """The state in English."""
        return self.said.by(SAYINGS)

    @property
    def advice(self) -> str:
        """The action to take in English, '' if none."""
        return self.todo.by(SAYINGS) if self.todo else ""


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
