"""The types of the forms of arguments (`roomlore.verbs.table`) that HTTP and MCP share, as Pydantic takes them."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import Field

from roomlore.verbs.table import Choice, Flag, Form, Id, Many, Number, Object, Reference, Whole

Shape = tuple[Any, dict[str, Any]]
"""A type, and its bounds as `Field` takes them."""
Shapes = Mapping[Any, Callable[[Any], Shape]]
"""What makes the shape of a form, by its class; of a reference or a page by itself."""


def an_id(form: Id) -> Shape:
    shown = {"json_schema_extra": {"pattern": f"^{form.pattern}$"}} if form.pattern else {}
    return str, {"min_length": None if form.blank else 1, "max_length": form.most, **shown}


_BY_ID = frozenset(Reference) - {Reference.SCOPE, Reference.SOURCE}
_SHARED: Shapes = {
    Id: an_id,
    Number: lambda form: (float, {"gt" if form.above else "ge": form.low, "le": form.high}),
    Whole: lambda form: (int, {"ge": form.low, "le": form.high}),
    Flag: lambda _: (bool, {}),
    Choice: lambda form: (
        (str, {"json_schema_extra": {"enum": [*form.words]}}) if form.open else (Literal[form.words], {})
    ),
    Object: lambda _: (dict[str, Any], {}),
}


def shape(form: Form, own: Shapes) -> Shape:
    """Return the shape of a form. `own`: of the forms that a face gives a shape of its own. What is named by its id has
    that of an id. Raise `TypeError` for a form without a shape."""
    if isinstance(form, Many):
        kind, bounds = shape(form.of, own)
        return list[Annotated[kind, Field(**bounds)] if bounds else kind], {"max_length": form.most}  # type: ignore[misc]
    name = form if isinstance(form, Enum) else type(form)
    made = own.get(name) or _SHARED.get(name)
    if made is not None:
        return made(form)
    if form in _BY_ID:
        return an_id(Id())
    raise TypeError(f"There is no shape for {form!r}.")
