"""Arguments of tools that follow from the table of verbs."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, create_model, model_validator

from roomlore.core.memory.memory import MAX_SCOPE_CHARS
from roomlore.verbs.table import Argument, Moment, Page, Reference, Text, Verb, Words
from roomlore_server.forms import Shape, Shapes, shape
from roomlore_server.shapes import time_or_day

MAX_LISTED = 50
MAX_QUERY = 4_000
_USUAL = 20
_CODE_POINTS_A_CHARACTER = 8
_NULL = {"type": "null"}
_TIME = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}, _NULL]}
Offset = Annotated[int, Field(ge=0, le=2**63 - 1, description="The next_offset of the answer before.")]
TimeOrDay = Annotated[Any, PlainValidator(time_or_day), WithJsonSchema(_TIME)]


class Arguments(BaseModel):
    """Named arguments; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid")


def arguments_of(
    verb: Verb,
    *,
    without: Collection[str] = (),
    also: Mapping[str, tuple[Any, Any]] = MappingProxyType({}),
    base: type[Arguments] = Arguments,
) -> type[Arguments]:
    """Return the model of a tool's arguments: those of the verb, except those in `without`. `also`: further ones, or
    such in place of the verb's, each with its type and default."""
    fields = {argument.name: _field(argument) for argument in verb.arguments if argument.name not in without}
    some_of = [name for name in verb.some_of if name in fields]

    class Checked(base):  # type: ignore[valid-type, misc]
        @model_validator(mode="after")
        def _something(self) -> "Checked":
            if some_of and all(getattr(self, name) is None for name in some_of):
                raise ValueError(f"give at least one of {', '.join(some_of)}")
            return self

    made: Any = create_model
    model: type[Arguments] = made(verb.tool, __base__=Checked, __doc__=None, **fields | dict(also))
    return model


def given_of(verb: Verb, wanted: Arguments) -> dict[str, Any]:
    """Return the arguments of the verb that a call gave."""
    return wanted.model_dump(include=set(verb.by_name), exclude_unset=True, exclude_none=True)


def _field(argument: Argument) -> tuple[Any, Any]:
    if argument.form in (Reference.SCOPE, Reference.GROUP):
        return _described(str | None, "Whose: user:<id>, agent:<id> or group:<room>.", max_length=MAX_SCOPE_CHARS), None
    if argument.form is Page.SIZE:
        return Annotated[int, Field(ge=1, le=MAX_LISTED)], _USUAL
    if argument.form is Page.OFFSET:
        return Offset, argument.default
    kind, bounds = shape(argument.form, _SHAPES)
    default = list(argument.default) if isinstance(argument.default, tuple) else argument.default
    bounded = Annotated[kind, Field(**bounds)] if bounds else kind
    nullable = bounded | None if default is None and kind is not TimeOrDay else bounded
    limit = (
        f" At most {argument.form.most} characters."
        if isinstance(argument.form, Text) and not argument.form.blank
        else ""
    )
    return _described(nullable, f"{argument.help.en}{limit}"), ... if argument.is_needed else default


def _described(kind: Any, text: str, **bounds: Any) -> Any:
    return Annotated[kind, Field(description=text, **bounds)]


def _text(form: Text) -> Shape:
    """A text is let in by its code points; the service counts characters."""
    most = form.most * _CODE_POINTS_A_CHARACTER if isinstance(form.most, int) else None
    return str, {"min_length": None if form.blank else 1, "max_length": most}


_SHAPES: Shapes = {
    Text: _text,
    Words: lambda form: (str, {"min_length": 1, "max_length": min(form.most, MAX_QUERY)}),
    Moment: lambda _: (TimeOrDay, {}),
}
