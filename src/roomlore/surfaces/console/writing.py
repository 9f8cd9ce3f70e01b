"""Writing what is remembered by hand: something new, or a new version of what is there."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from starlette.responses import Response

from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.memory.intake import (
    Edit,
    NewMemory,
    check_confidence,
    check_kind,
    check_reason,
    check_statement,
    check_tags,
    checked_edit,
)
from roomlore.core.memory.models import Memory, MemoryKind, check_scope
from roomlore.surfaces.console.frame import Page
from roomlore.wiring import Lore

_COMMAS = re.compile("[,，、]")


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the form, as it was typed. `expected`: the version that the person saw, '' for something new."""

    statement: str = ""
    confidence: str = ""
    category: str = ""
    tags: str = ""
    kind: str = MemoryKind.FACT.value
    reason: str = ""
    expected: str = ""


async def asked(page: Page) -> Response:
    """An empty form for a scope, or one that holds what a memory says."""
    lore = page.need("read", "write")
    head = await _head(page, lore)
    scope = head.scope if head else check_scope(page.needed("scope"))
    group = scope.startswith("group:")
    draft = _of(head) if head else Draft(kind=(MemoryKind.GROUP if group else MemoryKind.FACT).value)
    return _form(page, scope, head, draft)


async def done(page: Page) -> Response:
    """Saves it; where it cannot be, the form comes back with what was typed and why."""
    lore = page.need("read", "write")
    head = await _head(page, lore)
    scope = head.scope if head else check_scope(page.needed("scope"))
    draft = _typed(page.form)
    if wrong := _wrong(draft):
        return _form(page, scope, head, draft, 422, wrong=wrong)
    try:
        memory, outcome = await (_change(lore, head, draft) if head else _add(lore, scope, draft))
    except Conflict as error:
        now = await lore.memories.head(head.memory_id) if head else None
        return _form(page, scope, now, draft, 409, problem=str(error))
    return page.go("/memory/one", id=memory.memory_id, done=outcome)


def _typed(form: Mapping[str, str]) -> Draft:
    """A browser sends each line end as CR LF, whatever the field held."""
    given = {one.name: form.get(one.name, str(one.default)) for one in fields(Draft)}
    return Draft(**{name: value.replace("\r\n", "\n") for name, value in given.items()})


async def _head(page: Page, lore: Lore) -> Memory | None:
    memory_id = page.asked("id")
    return await lore.memories.head(memory_id) if memory_id else None


def _of(head: Memory) -> Draft:
    return Draft(
        statement=head.statement,
        confidence="" if head.confidence is None else f"{head.confidence:g}",
        category=head.category,
        tags=", ".join(head.tags),
        kind=head.kind.value,
        expected=head.memory_id,
    )


def _confidence(typed: str) -> float | None:
    if not typed.strip():
        return None
    try:
        return check_confidence(float(typed))
    except ValueError as error:
        raise InvalidInput(f"confidence is {typed!r:.40}; it must be a number from 0 to 1.") from error


def _tags(typed: str) -> tuple[str, ...]:
    return check_tags([one.strip() for one in _COMMAS.split(typed) if one.strip()])


_CHECKS: Mapping[str, Callable[[str], Any]] = {
    "statement": check_statement,
    "confidence": _confidence,
    "category": lambda typed: checked_edit(Edit(category=typed)),
    "tags": _tags,
    "kind": check_kind,
    "reason": check_reason,
}


def _wrong(draft: Draft) -> list[str]:
    """The fields that cannot be taken."""
    return [name for name, check in _CHECKS.items() if not _fine(check, getattr(draft, name))]


def _fine(check: Callable[[str], Any], typed: str) -> bool:
    try:
        check(typed)
    except InvalidInput:
        return False
    return True


async def _add(lore: Lore, scope: str, draft: Draft) -> tuple[Memory, str]:
    new = NewMemory(
        scope=scope,
        statement=draft.statement,
        kind=MemoryKind(draft.kind),
        confidence=_confidence(draft.confidence),
        category=draft.category,
        tags=_tags(draft.tags),
        reason=draft.reason,
    )
    (told,) = await lore.memories.add_all([new])
    return told.memory, "add" if told.outcome == "added" else "there"


async def _change(lore: Lore, head: Memory, draft: Draft) -> tuple[Memory, str]:
    changed = await lore.memories.update(
        head.memory_id,
        statement=draft.statement,
        confidence=_confidence(draft.confidence),
        category=draft.category,
        tags=_tags(draft.tags),
        expected=draft.expected or None,
        reason=draft.reason,
    )
    return changed, "same" if changed.memory_id == draft.expected else "update"


def _form(
    page: Page,
    scope: str,
    head: Memory | None,
    draft: Draft,
    status: int = 200,
    *,
    wrong: list[str] | None = None,
    problem: str = "",
) -> Response:
    """`expected` follows what is shown, so that saving again is meant to replace that."""
    overtaken = head if problem and head and head.memory_id != draft.expected else None
    return page.show(
        "write.html",
        status,
        scope=scope,
        head=head,
        draft=draft,
        expected=overtaken.memory_id if overtaken else draft.expected,
        kinds=[one.value for one in MemoryKind],
        wrong=wrong or [],
        problem=problem,
        overtaken=overtaken,
    )
