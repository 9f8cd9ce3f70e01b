"""Memories of other systems: DeerFlow's `memory.json`, mem0's export. Such a file is small and read as a whole."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import check_scope
from roomlore.core.memory.writing import ImportedMemories, NewMemory, Skipped
from roomlore.importers.memories import deerflow, mem0
from roomlore.importers.memories.entries import Entries, Entry

FORMS = (deerflow.NAME, mem0.NAME)


def read_memories(
    source: Path | str | bytes | Mapping[str, Any] | Sequence[Any], *, form: str | None = None, scope: str | None = None
) -> ImportedMemories:
    """Return the memories of another system: a path, the file's bytes, or its JSON as Python values.

    `form`: one of `FORMS`, None detects it. `scope`: of entries that do not name one. Raise `InvalidInput` if nothing
    of it can be read.
    """
    if form is not None and form not in FORMS:
        raise InvalidInput(f"No form is called {form!r:.60}; choose one of {', '.join(FORMS)}.")
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
        raise InvalidInput(f"{name} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is not UTF-8: byte {error.start} cannot be read. Encode it as UTF-8.") from error
    except ValueError as error:
        raise InvalidInput(f"{name!r:.80} is no path: {error}.") from error


def _of_text(name: str, text: str, form: str | None, scope: str | None) -> tuple[str, Entries]:
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise InvalidInput(f"{name} is nested too deeply; flatten it.") from error
    except ValueError as error:
        if form != deerflow.NAME and _is_lines(text):
            return mem0.NAME, _lines(text, scope)
        raise InvalidInput(f"{name} is not JSON: {error}.") from error
    return _of_document(name, document, form, scope)


def _of_document(name: str, document: Any, form: str | None, scope: str | None) -> tuple[str, Entries]:
    if form == deerflow.NAME or (form is None and deerflow.is_like(document)):
        return deerflow.NAME, deerflow.read(document, scope)
    if form == mem0.NAME or mem0.is_like(document):
        return mem0.NAME, mem0.read(document, scope)
    raise InvalidInput(f"{name} is in no form that can be told by looking; name one of {', '.join(FORMS)}.")


def _is_lines(text: str) -> bool:
    """Return True if the first line holds an object of its own."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return isinstance(_value(first), dict)


def _lines(text: str, scope: str | None) -> Entries:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            value = _value(line)
            place = f"line {number}"
            yield mem0.read_entry(place, line if value is None else value, scope)


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
