"""mem0's memories, as `get_all()` and its export give them, one JSON document or one object a line.

    {"results": [{"id", "memory", "user_id", "agent_id", "metadata", "categories", "created_at", "updated_at"}, ...]}

A list alone is fine, and so are the records of its vector stores (`payload`). Its `score` is how near a memory came to
a question, and no confidence.
"""

from collections.abc import Mapping
from typing import Any

from roomlore.core.memory.writing import NewMemory, normal
from roomlore.core.records import parse_time
from roomlore.importers.export_files import derived_id
from roomlore.importers.memories.entries import Entries, Entry, label, labels, name_of, skipped

NAME = "mem0"
_LISTS = ("results", "memories", "data")
_TEXTS = ("memory", "data", "text", "content")
_OWNERS = (("user_id", "user"), ("agent_id", "agent"))


def is_like(document: Any) -> bool:
    entries = _entries(document)
    return entries is not None and (not entries or any(isinstance(one, Mapping) and _text(one) for one in entries))


def read(document: Any, scope: str | None) -> Entries:
    entries = _entries(document)
    if entries is None:
        entries = [document]
    for number, entry in enumerate(entries):
        yield read_entry(f"results[{number}]", entry, scope)


def read_entry(place: str, given: Any, scope: str | None) -> Entry:
    """Return one memory."""
    if not isinstance(given, Mapping):
        return skipped(place, "not an object", given)
    entry = _flat(given)
    text = _text(entry)
    if not text:
        return skipped(place, "it has no memory", given)
    owner = _owner(entry) or scope
    if owner is None:
        return skipped(place, "it does not say whom it is about (user_id, agent_id); name the scope", given)
    return place, _memory(entry, text, owner)


def _memory(entry: Mapping[str, Any], text: str, scope: str) -> NewMemory:
    metadata = entry.get("metadata")
    extra: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    groups = labels(entry.get("categories"))
    category = label(extra.get("category")) or next(iter(groups), "")
    tags = dict.fromkeys((*groups, *labels(extra.get("tags"))))
    return NewMemory(
        scope=scope,
        statement=text,
        confidence=extra.get("confidence"),
        category=category,
        tags=tuple(tag for tag in tags if tag != category),
        memory_id=derived_id(NAME, scope, name_of(entry.get("id")) or normal(text)),
        created_at=parse_time(entry.get("created_at")),
        updated_at=parse_time(entry.get("updated_at")),
        made_by="import:mem0",
        reason="imported from mem0",
    )


def _entries(document: Any) -> list[Any] | None:
    if isinstance(document, list):
        return document
    if not isinstance(document, Mapping):
        return None
    return next((document[name] for name in _LISTS if isinstance(document.get(name), list)), None)


def _flat(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    payload = entry.get("payload")
    return {**payload, **entry} if isinstance(payload, Mapping) else entry


def _text(entry: Mapping[str, Any]) -> str:
    flat = _flat(entry)
    return next((text for name in _TEXTS if isinstance(text := flat.get(name), str) and text.strip()), "")


def _owner(entry: Mapping[str, Any]) -> str | None:
    return next((f"{kind}:{name}" for field, kind in _OWNERS if (name := name_of(entry.get(field)))), None)
