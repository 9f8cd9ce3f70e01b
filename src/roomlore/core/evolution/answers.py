"""What a model's answer asks for: JSON Lines as models really write them. No text makes it raise."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, get_args

from roomlore.core.evolution.finding import FIELDS, Piece, find
from roomlore.core.evolution.lexing import INVISIBLE
from roomlore.core.evolution.models import Answer, Kind, Rejected, Wish
from roomlore.core.plain import storable

MOST_WISHES = 1000
MOST_REJECTED = 200
_REJECTED_CHARS = 120
_HANDLE_CHARS = 64
_MOST_ITEMS = 100
_BETWEEN = re.compile(r"[,，、;；]")
_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


class _Unfit(ValueError):
    """Why an object asks for nothing that can be done."""


def read_answer(text: str, *, repair: Callable[[str], str] | None = None) -> Answer:
    """What the answer asks for, in its order.

    `repair`: makes JSON of an object that is none even after full-width punctuation, quotes, keys, commas and comments
    were put right here; called for whole objects of at most 20,000 characters, at most 200 times; it must not raise.
    Objects that are cut off, that stand in comments, thoughts or texts, or that contradict themselves are rejected. At
    most 1,000 wishes and 200 rejections come back, then one rejection that says how many more there were. A keep or
    delete of several memories becomes one wish for each.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    pieces, passed_over = find(text, repair)
    wishes: list[Wish] = []
    rejected: list[Rejected] = []
    for piece in pieces:
        try:
            asked = list(_wishes(piece))
            if len(wishes) + len(asked) > MOST_WISHES:
                raise _Unfit(f"There are more than {MOST_WISHES} wishes before it.")
            wishes.extend(asked)
        except _Unfit as unfit:
            rejected.append(Rejected(piece.line, _short(piece.text), str(unfit)))
    return Answer(tuple(wishes), _capped(rejected, passed_over))


def _capped(rejected: list[Rejected], passed_over: int) -> tuple[Rejected, ...]:
    more = max(0, len(rejected) - MOST_REJECTED) + passed_over
    if not more:
        return tuple(rejected)
    kept = rejected[:MOST_REJECTED]
    line = rejected[MOST_REJECTED].line if len(rejected) > MOST_REJECTED else kept[-1].line
    return (*kept, Rejected(line, "", f"{more} more could not be used from here on."))


def _short(text: str) -> str:
    text = storable(text[: _REJECTED_CHARS + 1]).strip()
    return text if len(text) <= _REJECTED_CHARS else text[: _REJECTED_CHARS - 1] + "…"


def _wishes(piece: Piece) -> Iterator[Wish]:
    if piece.value is None:
        raise _Unfit(piece.fault)
    for fields in _unwrapped(piece.value):
        yield from _split(_wish(fields, piece))


def _unwrapped(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects in a wrapper that names them after something else; else the object itself."""
    if FIELDS & fields.keys():
        return [fields]
    lists = [value if isinstance(value, list) else [value] for value in fields.values()]
    inner = [one for values in lists for one in values if isinstance(one, dict)]
    return inner or [fields]


def _split(wish: Wish) -> Iterator[Wish]:
    if wish.kind == "update" or len(wish.handles) < 2:
        yield wish
        return
    for handle in wish.handles:
        yield Wish(
            line=wish.line,
            kind=wish.kind,
            handles=(handle,),
            reason=wish.reason,
            tags=wish.tags,
            evidence=wish.evidence,
            confidence=wish.confidence,
            repaired=wish.repaired,
        )


def _wish(fields: dict[str, Any], piece: Piece) -> Wish:
    kind = _kind(fields)
    handles = _handles(fields)
    if kind == "create" and handles:
        raise _Unfit("A create names no memory; an update does.")
    if kind in ("update", "delete") and not handles:
        raise _Unfit(f"It does not say in old_id which memory to {kind}.")
    return Wish(
        line=piece.line,
        kind=kind,
        handles=handles,
        statement=_statement(fields) if kind in ("update", "create") else "",
        reason=_text(fields, "change_reason") or _text(fields, "reason"),
        tags=_items(fields, "tags"),
        evidence=_evidence(fields),
        confidence=_confidence(fields.get("confidence")),
        repaired=piece.repaired,
    )


def _kind(fields: dict[str, Any]) -> Kind:
    if fields.get("action") is None:
        raise _Unfit("It has no action.")
    action = _text(fields, "action")
    if (kind := _KINDS.get(action.lower())) is None:
        raise _Unfit(f"No action is called {storable(action)!r:.60}; there are {', '.join(_KINDS)}.")
    return kind


def _handles(fields: dict[str, Any]) -> tuple[str, ...]:
    given = (*_items(fields, "old_id"), *_items(fields, "old_ids"))
    return tuple(dict.fromkeys(map(_handle, given)))


def _handle(given: str) -> str:
    """'ｍ１ ' and 'M1' are m1."""
    handle = unicodedata.normalize("NFKC", given[: _HANDLE_CHARS + 1]).strip().strip(INVISIBLE).lower()
    if len(handle) > _HANDLE_CHARS:
        raise _Unfit(f"A handle is longer than {_HANDLE_CHARS} characters.")
    return handle


def _evidence(fields: dict[str, Any]) -> tuple[str, ...]:
    """'c1, c2' is two handles in one text."""
    given = (one for several in _items(fields, "evidence") for one in _BETWEEN.split(several))
    return tuple(dict.fromkeys(_handle(one) for one in given if one.strip()))


def _statement(fields: dict[str, Any]) -> str:
    statement = _text(fields, "statement")
    if not statement:
        raise _Unfit("It has no statement.")
    return statement


def _items(fields: dict[str, Any], name: str) -> tuple[str, ...]:
    """A text, or a list of texts; the empty ones are left out."""
    given = fields.get(name)
    given = [] if given is None else given if isinstance(given, list) else [given]
    if not all(isinstance(one, str) for one in given):
        raise _Unfit(f"Its {name} must be texts.")
    if len(given) > _MOST_ITEMS:
        raise _Unfit(f"Its {name} are more than {_MOST_ITEMS}.")
    return tuple(item for one in given if (item := _clean(one)))


def _text(fields: dict[str, Any], name: str) -> str:
    given = fields.get(name)
    if given is None:
        return ""
    if not isinstance(given, str):
        raise _Unfit(f"Its {name} must be a text.")
    return _clean(given)


def _clean(text: str) -> str:
    return storable(text).strip().strip(INVISIBLE).strip()


def _confidence(given: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given) or not 0 <= given <= 1:
        raise _Unfit("Its confidence must be a number from 0 to 1.")
    return float(given)
