"""Fields of forms that follow from the table of verbs."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from roomlore.core.memory.writing import is_longer
from roomlore.core.patterns import lazy_pattern
from roomlore.verbs import table
from roomlore.verbs.table import NEEDED, Argument, Choice, Many, Number, Text
from roomlore_console.frame import Page

_COMMAS = lazy_pattern("[,，、]")
_UNITS_A_CHARACTER = 16
"""A browser counts UTF-16 units: two for each of the eight code points that a character may have."""
_SHORT = 64


class Field(NamedTuple):
    """An argument in a form. `kind`: of its form. `typed`: its content. `problem`: what it takes, '' if it takes that.
    `choices`: what pages call its words. `units`: how long the content may be."""

    argument: Argument
    kind: str
    label: str
    hint: str
    typed: str
    problem: str
    choices: Mapping[str, str]
    units: int


class Form(NamedTuple):
    """Fields, and what a verb is given of them; None if one has a problem."""

    fields: list[Field]
    given: dict[str, Any] | None


def shown(page: Page, arguments: Iterable[Argument], values: Mapping[str, Any]) -> Form:
    """Return a form with these values, and defaults for the others."""
    return Form(
        [_field(page, argument, _as_typed(values.get(argument.name, argument.default))) for argument in arguments], {}
    )


def sent(page: Page, arguments: Iterable[Argument]) -> Form:
    """Return the form that a page sent, as it was typed. A browser sends each line end as CR LF."""
    fields, given = [], {}
    for argument in arguments:
        typed = page.form.get(argument.name, _as_typed(argument.default)).replace("\r\n", "\n")
        with suppress(ValueError):
            given[argument.name] = _read(argument, typed)
        fields.append(_field(page, argument, typed, wrong=argument.name not in given))
    return Form(fields, given if len(given) == len(fields) else None)


def _as_typed(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return "" if value is None or value is NEEDED else text


def _field(page: Page, argument: Argument, typed: str, *, wrong: bool = False) -> Field:
    """Return the field. Its label is the word that pages have for the argument, else its help."""
    tongue, words = page.tongue, page.tongue.words
    choices = (
        {word: words[f"{argument.name}.{word}"] for word in argument.form.words}
        if isinstance(argument.form, Choice)
        else {}
    )
    help_text, label = (
        words.get(f"hint.{argument.name}") or str(getattr(argument.help, tongue.language)).replace("`", ""),
        words.get(f"field.{argument.name}"),
    )
    hints = [words[f"hint.{argument.name}.{word}"] for word in choices] or ([help_text] if label else [])
    hints += [tongue.say("hint.many")] if isinstance(argument.form, Many) else []
    hint = (" " if tongue.language == "en" else "").join(hints)
    kind = type(argument.form).__name__.lower()
    problem = tongue.say(f"wrong.{kind if typed.strip() else 'nothing'}", form=argument.form) if wrong else ""
    return Field(argument, kind, label or help_text[:-1], hint, typed, problem, choices, _units(argument.form))


def _units(form: table.Form) -> int:
    """Return how long the content of a field may be. Raise `TypeError` for a form that pages have no field for."""
    match form:
        case Text(int(most)):
            return most * _UNITS_A_CHARACTER
        case Many(Text() as text, most):
            return most * (_units(text) + len(", "))
        case Number() | Choice():
            return _SHORT
    raise TypeError(f"Pages have no field for {form!r}.")


def _read(argument: Argument, typed: str) -> Any:
    """Return what was typed, as a verb takes it. Nothing is the default of the argument, or an empty list. Raise
    `ValueError`."""
    nothing = not typed.strip()
    if len(typed) > _units(argument.form) or (nothing and argument.is_needed):
        raise ValueError(argument.name)
    if nothing and not (isinstance(argument.form, Text) and argument.form.blank):
        return () if isinstance(argument.form, Many) else argument.default
    return _value(argument, typed)


def _value(argument: Argument, typed: str) -> Any:
    value: Any = typed
    fits = True
    match argument.form:
        case Text(int(most)):
            fits = not is_longer(typed, most)
        case Number(low, high):
            value = float(typed)
            fits = low <= value <= high
        case Choice(words):
            fits = typed in words
        case Many(Text(int(most)), many):
            value = tuple(dict.fromkeys(filter(None, map(str.strip, _COMMAS.split(typed)))))
            fits = len(value) <= many and not any(is_longer(part, most) for part in value)
    if not fits:
        raise ValueError(argument.name)
    return value
