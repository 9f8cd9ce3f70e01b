"""Memories of other systems: DeerFlow's `memory.json`, mem0's export. Such a file is small and read as a whole.

mem0, as `get_all()` and its export give them, one JSON document or one object a line; a list alone is fine, and so are
the records of its vector stores (`payload`). Its `score` is how near a memory came to a question, and no confidence.

    {"results": [{"id", "memory", "user_id", "agent_id", "metadata", "categories", "created_at", "updated_at"}, ...]}

DeerFlow: facts with a confidence, and summaries of who the user is and what went before. A summary becomes a memory of
its own, whose category is the name of its section.

    {"user": {"workContext": {"summary": ..., "updatedAt": ...}, ...}, "history": {"recentMonths": {...}, ...},
     "facts": [{"id", "content", "category", "confidence", "createdAt", "source"}, ...]}
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import check_scope
from roomlore.core.memory.versions import ImportedMemories, Skipped
from roomlore.core.memory.writing import MAX_LABEL, MAX_REASON, NewMemory, normal
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import parse_time
from roomlore.core.text import truncate
from roomlore_importers.export_files import derived_id, excerpt

Entry: TypeAlias = "tuple[str, NewMemory] | Skipped"
Entries: TypeAlias = Iterator[Entry]


def _skipped(place: str, reason: str, value: Any) -> Skipped:
    """Return a skipped entry. `value`: its content."""
    return Skipped(place, reason, excerpt(json.dumps(value, ensure_ascii=False, default=str)))


def _label(value: Any) -> str:
    """Return a category or a tag; '' if it is no text."""
    return truncate(value.strip(), MAX_LABEL).strip() if isinstance(value, str) else ""


def _labels(value: Any) -> tuple[str, ...]:
    """Return a list of texts, or one of them, without repetitions."""
    given = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(dict.fromkeys(label for label in map(_label, given) if label))


def _reason(*parts: str) -> str:
    """Return a reason for the log."""
    return truncate("; ".join(part for part in parts if part), MAX_REASON)


def _name_of(value: Any) -> str:
    """Return an id, which may be a number; '' if there is none."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if number else value if isinstance(value, str) else ""


MEM0 = "mem0"
_LISTS = ("results", "memories", "data")
_TEXTS = ("memory", "data", "text", "content")
_OWNERS = (("user_id", "user"), ("agent_id", "agent"))


def _is_mem0(document: Any) -> bool:
    entries = _entries(document)
    return entries is not None and (
        not entries or any(isinstance(entry, Mapping) and _mem0_text(entry) for entry in entries)
    )


def _of_mem0(document: Any, scope: str | None) -> Entries:
    entries = _entries(document)
    if entries is None:
        entries = [document]
    for number, entry in enumerate(entries):
        yield _mem0_entry(f"results[{number}]", entry, scope)


def _mem0_entry(place: str, given: Any, scope: str | None) -> Entry:
    """Return one memory."""
    if not isinstance(given, Mapping):
        return _skipped(place, "not an object", given)
    entry = _flat(given)
    text = _mem0_text(entry)
    if not text:
        return _skipped(place, "it has no memory", given)
    owner = _owner(entry) or scope
    if owner is None:
        return _skipped(place, "it does not say whom it is about (user_id, agent_id); name the scope", given)
    return place, _memory(entry, text, owner)


def _memory(entry: Mapping[str, Any], text: str, scope: str) -> NewMemory:
    metadata = entry.get("metadata")
    extra: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    groups = _labels(entry.get("categories"))
    category = _label(extra.get("category")) or next(iter(groups), "")
    tags = dict.fromkeys((*groups, *_labels(extra.get("tags"))))
    return NewMemory(
        scope=scope,
        statement=text,
        confidence=extra.get("confidence"),
        category=category,
        tags=tuple(tag for tag in tags if tag != category),
        memory_id=derived_id(MEM0, scope, _name_of(entry.get("id")) or normal(text)),
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


def _mem0_text(entry: Mapping[str, Any]) -> str:
    flat = _flat(entry)
    return next((text for name in _TEXTS if isinstance(text := flat.get(name), str) and text.strip()), "")


def _owner(entry: Mapping[str, Any]) -> str | None:
    return next((f"{kind}:{name}" for field, kind in _OWNERS if (name := _name_of(entry.get(field)))), None)


DEERFLOW = "deerflow"
_FROM_DEERFLOW = "import:deerflow"
_PARTS = ("user", "history")
_HUMP = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")


def _is_deerflow(document: Any) -> bool:
    if not isinstance(document, Mapping):
        return False
    return isinstance(document.get("facts"), list) or any(isinstance(document.get(part), Mapping) for part in _PARTS)


def _of_deerflow(document: Any, scope: str | None) -> Entries:
    if not isinstance(document, Mapping):
        raise InvalidInput("deerflow_memory_invalid")
    if not scope:
        raise InvalidInput("memories_scope_missing")
    for part in _PARTS:
        yield from _summaries(part, document.get(part), scope)
    facts = document.get("facts")
    if facts is not None and not isinstance(facts, list):
        yield _skipped("facts", "not a list", facts)
    for number, fact in enumerate(facts if isinstance(facts, list) else []):
        yield _fact(f"facts[{number}]", fact, scope)


def _summaries(part: str, sections: Any, scope: str) -> Entries:
    if sections is not None and not isinstance(sections, Mapping):
        yield _skipped(part, "not an object", sections)
        return
    for name, section in (sections or {}).items():
        place = f"{part}.{name}"
        text = section.get("summary") if isinstance(section, Mapping) else section
        if not isinstance(text, str | None):
            yield _skipped(place, "the summary is not a text", section)
        elif text and text.strip():
            yield place, _summary(place, name, text, section, scope)


def _summary(place: str, name: str, text: str, section: Any, scope: str) -> NewMemory:
    updated = parse_time(section.get("updatedAt")) if isinstance(section, Mapping) else None
    return NewMemory(
        scope=scope,
        statement=text,
        category=_label(_HUMP.sub(" ", name).lower()),
        tags=("summary",),
        memory_id=derived_id(DEERFLOW, scope, place),
        created_at=updated,
        updated_at=updated,
        made_by=_FROM_DEERFLOW,
        reason="imported from DeerFlow",
    )


def _fact(place: str, fact: Any, scope: str) -> Entry:
    if not isinstance(fact, Mapping):
        return _skipped(place, "not an object", fact)
    text = fact.get("content")
    if not isinstance(text, str) or not text.strip():
        return _skipped(place, "it has no content", fact)
    source, wrong = _name_of(fact.get("source")), _label(fact.get("sourceError"))
    name = _name_of(fact.get("id")) or normal(text)
    return place, NewMemory(
        scope=scope,
        statement=text,
        confidence=fact.get("confidence"),
        category=_label(fact.get("category")),
        memory_id=derived_id(DEERFLOW, scope, "facts", name),
        created_at=parse_time(fact.get("createdAt")),
        made_by=_FROM_DEERFLOW,
        reason=_reason("imported from DeerFlow", source and f"source: {source}", wrong and f"corrects: {wrong}"),
    )


FORMS = (DEERFLOW, MEM0)


def read_memories(
    source: Path | str | bytes | Mapping[str, Any] | Sequence[Any], *, form: str | None = None, scope: str | None = None
) -> ImportedMemories:
    """Return the memories of another system: a path, the file's bytes, or its JSON as Python values.

    `form`: one of `FORMS`, None detects it. `scope`: of entries that do not name one. Raise `InvalidInput` if nothing
    of it can be read.
    """
    if form is not None and form not in FORMS:
        raise InvalidInput("memories_form_unknown", form=f"{form!r:.60}", known=", ".join(FORMS))
    if scope is not None:
        check_scope(scope)
    if isinstance(source, Path | str | bytes | bytearray):
        name, text = _text(source)
        return _gathered(*_of_text(name, text, form, scope))
    return _gathered(*_of_document("This", source, form, scope))


def _text(source: Path | str | bytes | bytearray) -> tuple[str, str]:
    name = "This" if isinstance(source, bytes | bytearray) else str(source)
    try:
        raw = bytes(source) if isinstance(source, bytes | bytearray) else Path(source).read_bytes()
        return name, raw.decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput("file_unreadable", path=name, why=error.strerror) from error
    except UnicodeDecodeError as error:
        raise InvalidInput("file_not_utf8", path=name, number=error.start) from error
    except ValueError as error:
        raise InvalidInput("path_invalid", path=f"{name!r:.80}", why=error) from error


def _of_text(name: str, text: str, form: str | None, scope: str | None) -> tuple[str, Entries]:
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise InvalidInput("file_nested_too_deep", path=name) from error
    except ValueError as error:
        if form != DEERFLOW and _is_lines(text):
            return MEM0, _lines(text, scope)
        raise InvalidInput("file_not_json_now", path=name, why=error) from error
    return _of_document(name, document, form, scope)


def _of_document(name: str, document: Any, form: str | None, scope: str | None) -> tuple[str, Entries]:
    if form == DEERFLOW or (form is None and _is_deerflow(document)):
        return DEERFLOW, _of_deerflow(document, scope)
    if form == MEM0 or _is_mem0(document):
        return MEM0, _of_mem0(document, scope)
    raise InvalidInput("memories_form_unclear", path=name, known=", ".join(FORMS))


def _is_lines(text: str) -> bool:
    """Return True if the first line holds an object of its own."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return isinstance(_value(first), dict)


def _lines(text: str, scope: str | None) -> Entries:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            value = _value(line)
            place = f"line {number}"
            yield _mem0_entry(place, line if value is None else value, scope)


def _value(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _gathered(form: str, entries: Iterator[Entry]) -> ImportedMemories:
    """Return the entries; an id used for two different things stands for the first."""
    good: list[tuple[str, NewMemory]] = []
    bad: list[Skipped] = []
    seen: dict[str | None, tuple[str, NewMemory]] = {}
    for entry in entries:
        if isinstance(entry, Skipped):
            bad.append(entry)
            continue
        place, memory = entry
        first, same = seen.setdefault(memory.memory_id, entry)
        if same.statement == memory.statement:
            good.append(entry)
        else:
            bad.append(Skipped(place, f"its id stands for {first} already", memory.statement[:80]))
    return ImportedMemories(form, tuple(good), tuple(bad))
