"""All other rows that tell of a person, and the look through everything at the end."""

from collections.abc import AsyncIterator, Mapping

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
_STILL = "Rows that name the person: ids or names that callers chose, which others rest on. Change them, forget again."


class RowsWithout:
    """Rows on which nothing rests are dropped, others lose the words."""

    def __init__(self, *, storage: Storage) -> None:
        self._storage = storage

    async def rewrite(self, person: Person, tally: Tally) -> None:
        for table in _DROPPED:
            async for row in self._rows(person.tenant, table):
                if _tells(row, person) or _rests_on(table, row, person):
                    tally.places[table] += 1
                    if not tally.dry:
                        async with self._storage.writing() as work:
                            await work.rows.drop(tenant=person.tenant, table=table, key=row.key)
        for table, columns in _REDACTED.items():
            async for row in self._rows(person.tenant, table):
                if any(person.traces.mentioned(text) for name in columns for text in row.texts.get(name, ())):
                    tally.places[table] += 1
                    if not tally.dry:
                        async with self._storage.writing() as work:
                            await work.rows.redact(
                                tenant=person.tenant,
                                table=table,
                                key=row.key,
                                columns=columns,
                                change=lambda text: "" if person.traces.is_named(text) else person.traces.redact(text),
                            )

    async def look_through(self, person: Person) -> tuple[dict[str, int], dict[str, int]]:
        """How many rows each table has, and how many of them still tell of the person."""
        async with self._storage.reading() as work:
            tables = await work.rows.tables()
        seen: dict[str, int] = dict.fromkeys(tables, 0)
        telling: dict[str, int] = {}
        for table in tables:
            async for row in self._rows(person.tenant, table):
                seen[table] += 1
                if _tells(row, person):
                    telling[table] = telling.get(table, 0) + 1
        return seen, telling

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


def _tells(row: StoredRow, person: Person) -> bool:
    return any(person.traces.mentioned(text) for texts in row.texts.values() for text in texts)


def _rests_on(table: str, row: StoredRow, person: Person) -> bool:
    """Whether a context was chosen for, or from, what the person said, or an import is of a file named after them."""
    if table == "import_positions":
        return any(person.user_id in source for source in row.texts["source"])
    if table != "context_usage_records":
        return False
    said = person.in_room(row.texts["room_id"][0]).texts
    chosen = (*row.texts["trigger_message_id"], *row.texts["context_message_ids"])
    return any(one in said for one in chosen)
