"""Pydantic models made from dataclasses, of answers, the JSON that `to_jsonable` writes; and what models find wrong in
a request, in sentences that say what to do, the same on every surface.

Only the dataclass lists the fields. The description of a field is the sentence "`name`: ..." in its docstring.
"""

import inspect
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from difflib import get_close_matches
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from roomlore.core.dates import day_in
from roomlore.core.json_values import IN_JSON, REST
from roomlore.core.models import StoredMessage
from roomlore.core.records import parse_time
from roomlore.core.sessions.session import MessageContext, SessionContext
from roomlore.core.texts import Phrase, sentences
from roomlore.surfaces.jsonable import fields_of

_NAMES = r"(?:`\w+`(?:, )?)+"
_ABOUT_FIELDS = re.compile(rf"(?<!\S)({_NAMES}): (.+?)(?:\.(?= |$)|;(?= {_NAMES}: )|$)")
_PYTHON_WORDS = {"None": "null", "True": "true", "False": "false"}
_PYTHON = re.compile(rf"\b({'|'.join(_PYTHON_WORDS)})\b")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message for a chat model."""

    role: str
    content: str


_EXCEPTIONS: Mapping[tuple[type, str], Any] = {
    (StoredMessage, "sent_at"): datetime,
    (MessageContext, "window_messages"): list[ChatMessage],
    (SessionContext, "messages"): list[ChatMessage],
}
"""Fields that hold less than their type allows."""


def time_of(given: Any) -> datetime | None:
    """Return the time that a request gives, in UTC. Raise `ValueError` that names the forms."""
    moment = None if given is None else parse_time(given)
    if given is not None and moment is None:
        raise ValueError(f"{given!r:.60} is no time; give a day or a time, such as 2024-05-01 or 2024-05-01T12:30:00Z")
    return moment


def time_or_day(given: Any) -> date | None:
    """Return the day that a request gives without a time, else its time as `time_of` does."""
    day = day_in(given) if isinstance(given, str) else None
    return day or time_of(given)


@cache
def model_of(kind: type) -> type[BaseModel]:
    """Return the model of a dataclass, with its name and the fields that it has in JSON."""
    about, descriptions = _documented(kind)
    hints = get_type_hints(kind, include_extras=True)
    shown: dict[str, Any] = {}
    for name, optional in fields_of(kind):
        if name not in hints:
            derived = getattr(kind, name)
            hints[name], descriptions[name] = (
                get_type_hints(derived.fget)["return"],
                _in_json(inspect.getdoc(derived) or ""),
            )
        form = shape_of(_EXCEPTIONS.get((kind, name), hints[name]))
        shown[name] = (form, Field(None if optional else ..., description=descriptions.get(name)))
    open_ended = any(each.metadata.get(IN_JSON) == REST[IN_JSON] for each in fields(kind))
    exact = any(each.optional for each in fields_of(kind)) and not open_ended
    made: type[BaseModel] = create_model(
        kind.__name__,
        __config__=ConfigDict(extra="forbid" if exact else "ignore"),
        __doc__=about,
        __module__=kind.__module__,
        **shown,
    )
    return made


def _documented(kind: type) -> tuple[str, dict[str, str]]:
    """Return the description of a dataclass, and those of its fields, inherited ones too."""
    about, descriptions = "", dict[str, str]()
    for base in reversed([base for base in kind.__mro__ if is_dataclass(base)]):
        about, own = described(base.__doc__ or "")
        descriptions |= own
    return about, descriptions


def shape_of(kind: Any) -> Any:
    """Return the type that describes values of this type in JSON."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return model_of(kind)  # type: ignore[arg-type]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Literal[tuple(member.value for member in kind)]
    if origin is Annotated:
        return Annotated[shape_of(arguments[0]), *arguments[1:]]
    if origin in (Union, UnionType):
        return Union[tuple(map(shape_of, arguments))]  # noqa: UP007 - the members are known at run time only
    if origin is tuple and arguments[-1] is not Ellipsis:
        length = len(arguments)
        alike: Any = list[Union[tuple(map(shape_of, arguments))]]  # type: ignore[misc]  # noqa: UP007
        return Annotated[alike, Field(min_length=length, max_length=length)]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, shape_of(arguments[1])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return list[shape_of(arguments[0])]  # type: ignore[misc]
    return kind


def described(doc: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its sentences about fields, and these by the field's name."""
    descriptions: dict[str, str] = {}
    rest = []
    for paragraph in inspect.cleandoc(doc).split("\n\n"):
        line = " ".join(paragraph.split())
        for names, description in _ABOUT_FIELDS.findall(line):
            descriptions |= dict.fromkeys(re.findall(r"\w+", names), _in_json(description))
        rest.append(_ABOUT_FIELDS.sub("", line))
    return _in_json(" ".join(" ".join(rest).split())), descriptions


def _in_json(text: str) -> str:
    """Return a sentence of Python's documentation in the words of JSON."""
    worded = _PYTHON.sub(lambda match: _PYTHON_WORDS[match[0]], text).removesuffix(".")
    return f"{worded[:1].upper()}{worded[1:]}." if worded else ""


_CODES: Mapping[str, tuple[str, ...]] = {
    "bool_parsing": ("value_boolean_unreadable",),
    "bool_type": ("value_not_boolean",),
    "dict_type": ("value_not_an_object",),
    "float_parsing": ("value_number_unreadable",),
    "float_type": ("value_not_number",),
    "greater_than": ("value_not_above",),
    "greater_than_equal": ("value_below",),
    "int_parsing": ("value_integer_unreadable",),
    "int_type": ("value_not_integer",),
    "less_than": ("value_not_below",),
    "less_than_equal": ("value_above",),
    "list_type": ("value_not_a_list",),
    "literal_error": ("value_not_among",),
    "missing": ("field_missing",),
    "model_type": ("value_not_an_object",),
    "string_too_long": ("value_longer_than_one", "value_too_long"),
    "string_too_short": ("value_empty", "value_too_short"),
    "string_type": ("value_not_text",),
    "too_long": ("items_more_than_one", "items_too_many"),
    "too_short": ("item_missing", "items_missing"),
}
"""The codes of pydantic's errors: for a bound of one, and for others."""
_BOUNDS = ("gt", "ge", "lt", "le", "expected", "max_length", "min_length")
_SHOULD = re.compile(r"^(Input|String|List|Value) should")
_VERBS = ("must ", "is ")


def in_words(details: Any, fields: Iterable[str] = (), *, of_query: Collection[str] = ()) -> str:
    """Return validation errors as one text, a sentence each. `fields`: the names that the body may have. `of_query`:
    those that the query of the request may have."""
    return sentences("", *(_sentence(detail, list(fields), of_query) for detail in details))


def _sentence(detail: Mapping[str, Any], fields: list[str], of_query: Collection[str]) -> str:
    place = _place(detail["loc"])
    if detail["type"] == "extra_forbidden":
        return _unknown(place, fields, of_query)
    phrase = _phrase(place, detail) if place and detail["type"] in _CODES else None
    if phrase is not None and phrase.fields["bound"] is None:
        return phrase
    text = _SHOULD.sub("must", detail["msg"].removeprefix("Value error, "))
    if not place:
        return f"{text[:1].upper()}{text[1:]}."
    text = f"{place} {text}." if text.startswith(_VERBS) else f"{place}: {text}."
    return phrase if phrase == text else text


def _phrase(place: str, detail: Mapping[str, Any]) -> Phrase:
    context = detail.get("ctx", {})
    bound = next((context[name] for name in _BOUNDS if name in context), None)
    code = _CODES[detail["type"]][0 if bound == 1 else -1]
    shown = f"{bound:g}" if isinstance(bound, float) else bound
    return Phrase(code, field=place, bound=shown, number=context.get("actual_length"))


def _unknown(name: str, fields: list[str], of_query: Collection[str]) -> Phrase:
    named = f"{name!r:.80}"
    if name in of_query:
        return Phrase("field_belongs_in_address", name=named)
    near = get_close_matches(name.lower(), fields, n=1)
    if near:
        return Phrase("field_unknown_near", name=named, known=near[0])
    return Phrase("field_unknown_among" if fields else "field_unknown", name=named, known=", ".join(fields))


def _place(where: tuple[Any, ...]) -> str:
    beside = len(where) > 1 and where[0] in ("body", "query", "path")
    return ".".join(map(str, where[1:] if beside else where))
