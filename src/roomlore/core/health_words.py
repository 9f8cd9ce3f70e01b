"""What `roomlore doctor` says, by key: in English here, elsewhere in other languages of the same keys and values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PARTS = frozenset(
    {
        "clock", "database", "disk", "embedder", "extras", "integrity", "keys", "langfuse", "model", "models",
        "provider", "qdrant", "redis", "schedule", "sentry", "settings", "vectors", "work",
    }
)  # fmt: skip
"""What is looked at; of several of a kind a name follows, as in `provider near`."""

SAYINGS: Final[Mapping[str, str]] = {
    "settings.some": "{count} set ({sources})",
    "settings.none": "all as they ship",
    "settings.some.strange": "{count} set ({sources}); no settings of roomlore: {strange}",
    "settings.none.strange": "all as they ship; no settings of roomlore: {strange}",
    "settings.strange.do": "Unset these variables, or mend their names.",
    "extras.some": "installed: {there}",
    "extras.none": "installed: none",
    "extras.some.missing": "installed: {there}; missing for these settings: {missing}",
    "extras.none.missing": "installed: none; missing for these settings: {missing}",
    "extras.missing.do": "pip install 'roomlore[{extras}]'",
    "database.memory": "in memory: all is gone when the process ends",
    "database.memory.do": "Set database_url to a file or a PostgreSQL to keep anything.",
    "database.new": "{engine}, schema none yet, {mib:.1f} MiB",
    "database.new.do": "It is new: the first command that stores something makes its tables.",
    "database.other": "{engine}, schema {version}, {mib:.1f} MiB",
    "database.newer.do": "A newer roomlore wrote it: upgrade roomlore here.",
    "database.older.do": "Back it up; the next command that opens it brings it to schema {head}.",
    "database.written": "{engine}, schema {version}, {mib:.1f} MiB, a write took {ms:.1f} ms",
    "database.slow.do": "Writing is slow: look at the disk and at what else writes there.",
    "integrity.sound": "every page was read and is sound",
    "integrity.counted": "no page has failed its checksum",
    "integrity.damaged": "damaged: {faults}",
    "integrity.damaged.do": "Stop roomlore, keep this database aside, and bring back the last sound backup.",
    "integrity.late": "not read to the end within {seconds:g} s",
    "integrity.late.do": "Give it more time: `roomlore doctor --timeout 600`.",
    "clock.ahead": "the database's clock is {seconds:.1f} s ahead of this machine's",
    "clock.behind": "the database's clock is {seconds:.1f} s behind this machine's",
    "clock.do": "Set both machines by NTP: leases and schedules go by the clock.",
    "disk.free": "{gib:.1f} GiB free beside the database",
    "disk.none.do": "Make room now: SQLite stops when the disk is full.",
    "disk.little.do": "Make room soon.",
    "vectors.none": "vectors is pgvector, which this database has not",
    "vectors.none.do": "Install pgvector on the server (PostgreSQL only), or set vectors to auto.",
    "keys.none": "{host} can be reached from other machines and no API key exists",
    "keys.none.do": "Make one with `roomlore keys create NAME`; serving refuses else.",
    "work.left": "kept by DBOS beside the database; some waits or runs",
    "work.none": "kept by DBOS beside the database; none waits",
    "work.left.do": "See that a `roomlore worker` runs: the server leaves the work to it.",
    "work.process": "kept in each process alone; one that is killed begins it anew from the data",
    "work.process.do": "Install the extra `durable`, so that processes share the work.",
    "schedule.off": "groups evolve only when asked to (evolve_schedule is empty)",
    "schedule.next": "groups evolve next at {at} ({zone})",
    "embedder.quiet": "{embedder}; not asked here",
    "embedder.off": "off: search goes by words (embeddings)",
    "embedder.answers": "{name}, {dimensions} dimensions",
    "qdrant.off": "not used: vectors lie in the database",
    "qdrant.idle": "not used: embeddings is off",
    "qdrant.idle.do": "Set embeddings, or unset qdrant_url.",
    "qdrant.answers": "answers",
    "qdrant.empty": "answers; holds no messages yet, they are indexed behind",
    "redis.off": "not used: sessions are read from the database (redis_url)",
    "redis.answers": "answers",
    "langfuse.off": "not used: prompts are those that ship (langfuse_host)",
    "langfuse.answers": "answers; has prompt {name}",
    "langfuse.without": "answers; has no prompt {name}",
    "sentry.off": "not used: errors are told in the log alone (sentry_dsn)",
    "sentry.answers": "{host} answers; it is told of errors nobody foresaw",
    "provider.keyless": "no key in {variable}; it is not asked",
    "provider.keyless.do": "Set {variable} to use it.",
    "provider.answers": "can be reached",
    "provider.keyed": "can be reached; {variable} is set",
    "model.answers": "{provider}: answered",
    "model.fails": "{provider}: {error}",
    "model.fails.do": "`roomlore models test` asks again.",
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
"""What was found; under a key that ends in `.do`, what to do about it."""


@dataclass(frozen=True, slots=True)
class Saying:
    """Something that is said: a key of `SAYINGS`, and the values of its fields."""

    key: str
    values: Mapping[str, object]

    def by(self, words: Mapping[str, str]) -> str:
        """In the language of these words; raises `KeyError` where they lack the key."""
        return words[self.key].format_map(self.values)


def say(key: str, **values: object) -> Saying:
    return Saying(key, values)
