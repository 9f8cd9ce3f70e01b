"""DeerFlow's `memory.json`: facts with a confidence, and summaries of who the user is and what went before.

    {"user": {"workContext": {"summary": ..., "updatedAt": ...}, ...}, "history": {"recentMonths": {...}, ...},
     "facts": [{"id", "content", "category", "confidence", "createdAt", "source"}, ...]}

A summary becomes a memory of its own, whose category is the name of its section.
"""

import re
from collections.abc import Mapping
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.writing import NewMemory, normal
from roomlore.core.records import parse_time
from roomlore.importers.export_files import derived_id
from roomlore.importers.memories.entries import Entries, Entry, label, name_of, skipped, told

NAME = "deerflow"
_MADE_BY = "import:deerflow"
_PARTS = ("user", "history")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_like(document: Any) -> bool:
    if not isinstance(document, Mapping):
        return False
    return isinstance(document.get("facts"), list) or any(isinstance(document.get(part), Mapping) for part in _PARTS)


def read(document: Any, scope: str | None) -> Entries:
    if not isinstance(document, Mapping):
        raise InvalidInput("This is no memory.json of DeerFlow: it is not a JSON object.")
    if not scope:
        raise InvalidInput("A memory.json does not say whom it is about; name the scope, such as user:anna.")
    for part in _PARTS:
        yield from _summaries(part, document.get(part), scope)
    facts = document.get("facts")
    if facts is not None and not isinstance(facts, list):
        yield skipped("facts", "not a list", facts)
    for number, fact in enumerate(facts if isinstance(facts, list) else []):
        yield _fact(f"facts[{number}]", fact, scope)


def _summaries(part: str, sections: Any, scope: str) -> Entries:
    if sections is not None and not isinstance(sections, Mapping):
        yield skipped(part, "not an object", sections)
        return
    for name, section in (sections or {}).items():
        place = f"{part}.{name}"
        text = section.get("summary") if isinstance(section, Mapping) else section
        if not isinstance(text, str | None):
            yield skipped(place, "the summary is not a text", section)
        elif text and text.strip():
            yield place, _summary(place, name, text, section, scope)


def _summary(place: str, name: str, text: str, section: Any, scope: str) -> NewMemory:
    updated = parse_time(section.get("updatedAt")) if isinstance(section, Mapping) else None
    return NewMemory(
        scope=scope,
        statement=text,
        category=label(_HUMP.sub(" ", name).lower()),
        tags=("summary",),
        memory_id=derived_id(NAME, scope, place),
        created_at=updated,
        updated_at=updated,
        made_by=_MADE_BY,
        reason="imported from DeerFlow",
    )


def _fact(place: str, fact: Any, scope: str) -> Entry:
    if not isinstance(fact, Mapping):
        return skipped(place, "not an object", fact)
    text = fact.get("content")
    if not isinstance(text, str) or not text.strip():
        return skipped(place, "it has no content", fact)
    source, wrong = name_of(fact.get("source")), label(fact.get("sourceError"))
    name = name_of(fact.get("id")) or normal(text)
    return place, NewMemory(
        scope=scope,
        statement=text,
        confidence=fact.get("confidence"),
        category=label(fact.get("category")),
        memory_id=derived_id(NAME, scope, "facts", name),
        created_at=parse_time(fact.get("createdAt")),
        made_by=_MADE_BY,
        reason=told("imported from DeerFlow", source and f"source: {source}", wrong and f"corrects: {wrong}"),
    )
