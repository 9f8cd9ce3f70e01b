"""A store of LangGraph, whose items lie in roomlore. Needs the extra `langgraph`.

Each namespace is a room, and each item a message there: its value is kept as metadata, and what may be searched of it
is the text. Deleting an item empties its message, since the id of a deleted message stays taken.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any

from roomlore import InvalidInput, Lore, Message, NotFound, Role, StoredMessage, SyncLore
from roomlore.core.search.hits import SearchHit
from roomlore.core.text import truncate
from roomlore_integrations.agent_memory import check_lore

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
    )
except ModuleNotFoundError as error:
    raise InvalidInput("langgraph_not_installed", name=error.name) from error

__all__ = ["RoomloreStore"]

Namespace = tuple[str, ...]

_KEY = "langgraph"
_ROOMS = "store:"
_SENDER = "langgraph-store"
_PAGE = 500
_MAX_FOUND = 200
_ORDERS = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]")


class RoomloreStore(BaseStore):
    """LangGraph's `BaseStore` over roomlore: `graph.compile(store=RoomloreStore(lore))`.

    A search with a query finds by words, and by meaning if roomlore has embeddings; items that do not answer the query
    are left out. Items never expire. `lore`: from `roomlore.open_sync`, for every method; or from `roomlore.open`, for
    the async methods only. Raises `InvalidInput` for a `lore` that is neither.
    """

    __slots__ = ("_lore",)

    def __init__(self, lore: Lore | SyncLore) -> None:
        self._lore = check_lore(lore, "lore_invalid_for_framework")

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do all of it: what is read is as it was before what is put. Raises `InvalidInput` over an async roomlore."""
        if not isinstance(self._lore, SyncLore):
            raise InvalidInput("store_is_async")
        operations = list(ops)
        return self._lore.wait(lambda lore: _Items(lore).run(operations))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do all of it: what is read is as it was before what is put."""
        if isinstance(self._lore, SyncLore):
            return await asyncio.to_thread(self.batch, list(ops))
        return await _Items(self._lore).run(list(ops))


class _Items:
    """The items of a roomlore."""

    def __init__(self, lore: Lore) -> None:
        self._lore = lore

    async def run(self, ops: Sequence[Op]) -> list[Result]:
        results: list[Result] = [None] * len(ops)
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for number, op in enumerate(ops):
            if isinstance(op, PutOp):
                _check_namespace(op.namespace)
                puts[op.namespace, op.key] = op
            elif isinstance(op, GetOp):
                results[number] = await self._get(op.namespace, op.key)
            elif isinstance(op, SearchOp):
                results[number] = await self._search(op)
            elif isinstance(op, ListNamespacesOp):
                results[number] = await self._namespaces(op)
            else:
                raise InvalidInput("store_operation_unknown", kind=type(op).__name__)
        for put in puts.values():
            await self._put(put)
        return results

    async def _message(self, namespace: Namespace, key: str) -> StoredMessage | None:
        try:
            return (await self._lore.messages.get(_room(namespace), _message_id(key), viewer=None)).message
        except NotFound:
            return None

    async def _get(self, namespace: Namespace, key: str) -> Item | None:
        message = await self._message(namespace, key)
        return None if message is None or not _is_item(message) else Item(**_fields(message))

    async def _put(self, op: PutOp) -> None:
        kept = await self._message(op.namespace, op.key)
        if kept is None and op.value is None:
            return
        now = self._lore.now().isoformat()
        again = kept is not None and _is_item(kept)
        created = kept.metadata[_KEY]["created_at"] if kept and again else now
        item = None if op.value is None else _json(op, created, now)
        text = "" if op.value is None else self._searchable(op)
        if kept is None:
            report = await self._lore.messages.add(
                Message(
                    id=_message_id(op.key),
                    room_id=_room(op.namespace),
                    sender_id=_SENDER,
                    role=Role.SYSTEM,
                    text=text,
                    sent_at=self._lore.now(),
                    metadata={_KEY: item},
                ),
                on_conflict="report",
            )
            if report.added:
                return
        # Stored before, or by a faster writer meanwhile.
        await self._lore.messages.edit(_room(op.namespace), _message_id(op.key), text=text, metadata={_KEY: item})

    def _searchable(self, op: PutOp) -> str:
        if op.index is False:
            return ""
        paths = ["$"] if op.index is None else op.index
        texts = (text for path in paths for text in _texts(_at(op.value, path)))
        return truncate("\n".join(texts), self._lore.settings.limits.max_text_chars)

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        rooms = [room for room, namespace in await self._rooms(op.namespace_prefix)]
        items = await self._answers(rooms, op.query) if op.query else await self._newest(rooms)
        wanted = [(m, score) for m, score in items if _holds_all(m.metadata[_KEY]["value"], op.filter)]
        return [SearchItem(**_fields(m), score=score) for m, score in wanted[op.offset :][: op.limit]]

    async def _answers(self, rooms: Sequence[str], query: str) -> list[tuple[StoredMessage, float | None]]:
        items: list[tuple[StoredMessage, float | None]] = []
        for room_id in rooms:
            answer = await self._lore.messages.search(room_id, query, limit=_MAX_FOUND, viewer=None)
            items += [(hit.message, hit.score) for hit in answer.hits if _is_item(hit.message) and _answers_itself(hit)]
        return sorted(items, key=lambda item: -(item[1] or 0.0))

    async def _newest(self, rooms: Sequence[str]) -> list[tuple[StoredMessage, float | None]]:
        items = [message for room_id in rooms for message in await self._all(room_id)]
        items.sort(key=lambda message: str(message.metadata[_KEY]["updated_at"]), reverse=True)
        return [(message, None) for message in items]

    async def _all(self, room_id: str) -> list[StoredMessage]:
        items: list[StoredMessage] = []
        after = 0
        while page := await self._lore.messages.page(room_id, after=after, limit=_PAGE, viewer=None):
            items += filter(_is_item, page)
            after = page[-1].arrival
        return items

    async def _rooms(self, prefix: Namespace) -> list[tuple[str, Namespace]]:
        """Return the rooms of the namespaces that begin so."""
        begins = _room(prefix).removesuffix("]")
        rooms: list[tuple[str, Namespace]] = []
        after = begins
        while True:
            page = [room.room_id for room in await self._lore.rooms.page(after=after, limit=_PAGE, viewer=None)]
            ours = [room_id for room_id in page if room_id.startswith(begins)]
            named = [(room_id, _namespace(room_id)) for room_id in ours]
            rooms += [(room_id, there) for room_id, there in named if there[: len(prefix)] == prefix]
            if len(page) < _PAGE or not ours:
                return rooms
            after = ours[-1]

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        namespaces = {
            namespace[: op.max_depth]
            for room_id, namespace in await self._rooms(())
            if all(_matches(namespace, condition) for condition in op.match_conditions or ())
            and await self._all(room_id)
        }
        return sorted(namespaces)[op.offset :][: op.limit]


def _check_namespace(namespace: Namespace) -> None:
    """Raise `InvalidNamespaceError` for a namespace that `put` refuses; LangGraph's own `delete` checks less."""
    if not namespace or namespace[0] == _KEY:
        raise InvalidNamespaceError(f"{namespace!r:.80} is no namespace; begin with a label other than {_KEY!r}.")
    if not all(isinstance(label, str) and label and "." not in label for label in namespace):
        raise InvalidNamespaceError(f"{namespace!r:.80} is no namespace; its labels are texts without a full stop.")


def _room(namespace: Namespace) -> str:
    return _ROOMS + json.dumps(namespace, ensure_ascii=False, separators=(",", ":"))


def _namespace(room_id: str) -> Namespace:
    try:
        return tuple(json.loads(room_id.removeprefix(_ROOMS)))
    except (ValueError, TypeError):
        return ()


def _message_id(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _answers_itself(hit: SearchHit) -> bool:
    """Return True if the message was found for its own text: items beside it in a room are no conversation."""
    return hit.signals.get("words", 0.0) > 0 or hit.signals.get("meaning", 0.0) > 0


def _is_item(message: StoredMessage) -> bool:
    return isinstance(message.metadata.get(_KEY), Mapping)


def _json(op: PutOp, created: str, now: str) -> dict[str, Any]:
    """Return an item as it is kept. Raises `InvalidInput` for what is no JSON."""
    try:
        value = json.loads(json.dumps(op.value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("store_value_not_json", key=f"{op.key!r:.80}") from None
    return {"namespace": list(op.namespace), "key": op.key, "value": value, "created_at": created, "updated_at": now}


def _fields(message: StoredMessage) -> dict[str, Any]:
    kept = message.metadata[_KEY]
    return {
        "namespace": tuple(kept["namespace"]),
        "key": kept["key"],
        "value": dict(kept["value"]),
        "created_at": datetime.fromisoformat(kept["created_at"]),
        "updated_at": datetime.fromisoformat(kept["updated_at"]),
    }


def _at(value: Any, path: str) -> list[Any]:
    """Return what lies at a path such as 'memories[*].text'; '$' is all of it."""
    values = [value]
    for name, index in _STEP.findall(path.removeprefix("$")):
        values = [inner for value_there in values for inner in _inside(value_there, name, index)]
    return values


def _inside(value: Any, name: str, index: str) -> list[Any]:
    if name:
        return [value[name]] if isinstance(value, Mapping) and name in value else []
    if not isinstance(value, list):
        return []
    return value if index == "*" else value[int(index) : int(index) + 1]


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield the texts inside values, in order."""
    left = list(values)[::-1]
    while left:
        inner = left.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, Mapping):
            left += list(inner.values())[::-1]
        elif isinstance(inner, list | tuple):
            left += inner[::-1]


def _holds_all(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(_holds(value.get(name), condition) for name, condition in (wanted or {}).items())


def _holds(value: Any, wanted: Any) -> bool:
    """Return True if a value meets a condition: an equal one, an object with such values, or operators such as {'$gte':
    3}."""
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if any(str(name).startswith("$") for name in wanted):
        return all(_compares(value, name, given) for name, given in wanted.items())
    return isinstance(value, Mapping) and _holds_all(value, wanted)


def _compares(value: Any, operator: str, given: Any) -> bool:
    """Return True if the operator holds. Equality is that of LangGraph's InMemoryStore: a missing value is None. The
    order of two texts is that of its SqliteStore, else numbers are compared; what has no order meets no condition."""
    if operator in ("$eq", "$ne"):
        return (value == given) is (operator == "$eq")
    if operator not in _ORDERS:
        raise InvalidInput("store_filter_unknown", operator=f"{operator!r:.40}")
    if isinstance(value, str) and isinstance(given, str):
        return bool(_ORDERS[operator](value, given))
    try:
        return bool(_ORDERS[operator](float(value), float(given)))
    except (TypeError, ValueError, OverflowError):
        return False


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", name) for wanted, name in zip(path, part, strict=True))
