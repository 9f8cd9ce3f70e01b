"""All other rows that tell of a person, and the look through everything at the end."""

from collections.abc import AsyncIterator, Mapping, Sequence

from roomlore.ports.coordination import Ids
from roomlore.ports.privacy import StoredRow
from roomlore.ports.storage import Storage
from roomlore.services.privacy.person import Person
from roomlore.services.privacy.tally import Tally

_PAGE = 500
_DROPPED = ("context_usage_records", "watermarks", "rooms_due", "leases", "import_positions")
_REDACTED: Mapping[str, tuple[str, ...]] = {
    "sessions": ("user_id", "enterprise_id", "patient_id", "agent_key", "state"),
    "checkpoints": ("summary",),
    "rooms": ("settings",),
    "api_keys": ("name",),
}
_TELLS_NOTHING = frozenset(
    {
        "action", "content_hash", "keyword", "keywords", "kind", "language", "link_kind", "message_type", "model",
        "prompt_hash", "prompt_name", "role", "secret_hash", "status", "strategy", "words", "work",
    }
)  # fmt: skip
"""Columns that hold roomlore's own words, as somebody may have the id 'user'; and what is read of the texts beside
them, where 'users' becomes 'user'."""
_NAMES = frozenset(
    {
        "addressed", "agent_key", "checkpoint_id", "closes", "context_id", "context_message_ids", "covers_through",
        "enterprise_id", "evolution_id", "holder", "key_id", "lineage_id", "memory_id", "mentions",
        "merged_into", "message_id", "parents", "partners", "patient_id", "reply", "reply_to", "room_id", "root_id",
        "scope", "sender_id", "sources", "trigger_message_id", "turn_id", "undoes", "user_id",
    }
)  # fmt: skip
"""Columns that hold ids, of which capital letters make others."""
_LABELS = frozenset({"name"})
"""Columns that hold names in words of the caller's own."""
_STILL = "Rows that name the person: ids or names that callers chose, which others rest on. Change them, forget again."


class RowsWithout:
    """Rows on which nothing rests are dropped, others lose the words."""

    def __init__(self, *, storage: Storage, ids: Ids) -> None:
        self._storage = storage
        self._ids = ids

    async def rewrite(self, person: Person, tally: Tally) -> None:
        shared = await self._shared(person)
        for table in _DROPPED:
            async for row in self._rows(person.tenant, table):
                if _tells(table, row, person, shared) or _rests_on(table, row, person):
                    tally.places[table] += 1
                    if not tally.dry:
                        async with self._storage.writing() as work:
                            await work.rows.drop(tenant=person.tenant, table=table, key=row.key)
        for table, columns in _REDACTED.items():
            async for row in self._rows(person.tenant, table):
                told = [name for name in columns if _tells_in(name, row, person, words=_is_in(table, row, shared))]
                if told:
                    tally.places[table] += 1
                    if not tally.dry:
                        await self._redact(person, table, row, told)

    async def _redact(self, person: Person, table: str, row: StoredRow, told: Sequence[str]) -> None:
        traces = person.traces
        names = [column for column in told if column in _NAMES or column in _LABELS]
        texts = [column for column in told if column not in names]
        async with self._storage.writing() as work:
            for columns, redact in ((names, traces.redact_name), (texts, traces.redact)):
                if columns:
                    await work.rows.redact(
                        tenant=person.tenant,
                        table=table,
                        key=row.key,
                        columns=columns,
                        change=lambda text, redact=redact: "" if traces.is_named(text) else redact(text),  # type: ignore[misc]
                    )

    async def rename_deleted(self, person: Person, tally: Tally) -> None:
        """Messages that were deleted before and have ids with the person's in them."""
        async for row in self._rows(person.tenant, "messages"):
            if row.texts["sender_id"] == ("",) and _tells_in("message_id", row, person, words=False):
                tally.places["messages"] += 1
                async with self._storage.writing() as work:
                    await work.rows.redact(
                        tenant=person.tenant,
                        table="messages",
                        key=row.key,
                        columns=["message_id"],
                        change=lambda _: f"forgotten-{self._ids.new()}",
                    )

    async def look_through(self, person: Person) -> tuple[dict[str, int], dict[str, int]]:
        """How many rows each table has, and how many of them still tell of the person."""
        async with self._storage.reading() as work:
            tables = await work.rows.tables()
        shared = await self._shared(person)
        seen: dict[str, int] = dict.fromkeys(tables, 0)
        telling: dict[str, int] = {}
        for table in tables:
            async for row in self._rows(person.tenant, table):
                seen[table] += 1
                if _tells(table, row, person, shared):
                    telling[table] = telling.get(table, 0) + 1
        return seen, telling

    async def _shared(self, person: Person) -> set[object]:
        """Return the ids, and the keys, of the rooms in which the person spoke."""
        shared: set[object] = set(person.said)
        async for row in self._rows(person.tenant, "rooms"):
            if row.texts["room_id"][0] in person.said:
                shared.add(row.key[0])
        return shared

    async def _rows(self, tenant: str, table: str) -> AsyncIterator[StoredRow]:
        after = None
        while True:
            async with self._storage.reading() as work:
                page = await work.rows.page(tenant=tenant, table=table, after=after, limit=_PAGE)
            for row in page:
                yield row
            if len(page) < _PAGE:
                return
            after = page[-1].key


def still(tally: Tally, telling: Mapping[str, int]) -> None:
    for table, count in telling.items():
        if table not in tally.left:
            tally.leave(table, count, _STILL)


def _tells(table: str, row: StoredRow, person: Person, shared: set[object]) -> bool:
    words = _is_in(table, row, shared)
    if table == "messages":
        return any(_names(column, row, person) for column in row.texts)
    return any(_tells_in(column, row, person, words=words) for column in row.texts)


def _is_in(table: str, row: StoredRow, shared: set[object]) -> bool:
    """Whether the row was made from a room in which the person spoke: then the same words are theirs."""
    if table == "context_usage_records":
        return row.texts["room_id"][0] in shared
    return table in ("sessions", "checkpoints") and row.key[0] in shared


def _names(column: str, row: StoredRow, person: Person) -> bool:
    """Whether a column of a message has the id: whose words it has is decided where messages are rewritten."""
    if column in _TELLS_NOTHING:
        return False
    if column == "text":
        return any(next(person.traces.ids(text), None) for text in row.texts.get(column, ()))
    named = person.traces.named_in if column in _NAMES else person.traces.has_id
    return any(map(named, row.texts.get(column, ())))


def _tells_in(column: str, row: StoredRow, person: Person, *, words: bool) -> bool:
    """`words`: a passage alone tells of the person."""
    if column in _TELLS_NOTHING:
        return False
    traces, texts = person.traces, row.texts.get(column, ())
    if column in _NAMES or column == "memory":
        return any(map(traces.named_in, texts))
    if column in _LABELS:
        return any(map(traces.in_label, texts))
    return any(map(traces.mentioned if words else traces.tells, texts))


def _rests_on(table: str, row: StoredRow, person: Person) -> bool:
    """Whether a context was chosen for, or from, what the person said, or an import is of a file named after them."""
    if table == "import_positions":
        return any(person.traces.in_path(source) for source in row.texts["source"])
    if table != "context_usage_records":
        return False
    said = person.in_room(row.texts["room_id"][0]).texts
    chosen = (*row.texts["trigger_message_id"], *row.texts["context_message_ids"])
    return any(one in said for one in chosen)
