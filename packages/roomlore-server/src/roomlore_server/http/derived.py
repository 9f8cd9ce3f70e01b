"""Routes and bodies that follow from the table of verbs."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from roomlore.core.dates import is_before
from roomlore.core.errors import InvalidInput, UnknownRoom
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.memory import MAX_GROUP_CHARS, MAX_SCOPE_CHARS, SCOPE_PATTERN, Source
from roomlore.core.memory.writing import is_longer, scope_of
from roomlore.verbs.table import Argument, Many, Moment, Page, Reference, Text, Time, Verb, Words, missing
from roomlore.wiring import Lore
from roomlore_server.forms import Shape, Shapes, shape
from roomlore_server.http import bodies
from roomlore_server.http.bodies import Body, Bounds, OfRoom, TimeOrDay, needs_one
from roomlore_server.http.guard import Admin, Caller, Reader, ShownTo, Writer, caller_of
from roomlore_server.http.paths import MOST, PageLimit, addressed, query_of_room
from roomlore_server.http.routers import Router
from roomlore_server.http.times import TIME_IN_QUERY, read_time
from roomlore_server.http.times import Moment as MomentInQuery

_LORE = {"read": Reader, "write": Writer, "admin": Admin}
_NAMES: Mapping[str, str] = {"room": "room_id"}
_ROOMS = (Reference.ROOM, Reference.NEW_ROOM)
_NAMED = (*_ROOMS, Reference.CONVERSATION)
"""Forms of rooms, which have several names in a body."""


class SourceForm(BaseModel):
    """A message that supports a memory."""

    model_config = ConfigDict(extra="forbid", strict=True)
    room_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    message_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)


Shown = Callable[[Lore, Any, Mapping[str, Any]], Any]


def add_route(
    router: Router,
    verb: Verb,
    name: str,
    *,
    shown: Shown | None = None,
    gives: Any = None,
    names: Mapping[str, str] = MappingProxyType({}),
    also: Mapping[str, tuple[Any, Any]] = MappingProxyType({}),
    room_as_given: bool = False,
    bulk: bool = False,
    schema: Any = None,
    **options: Any,
) -> None:
    """Add the route of a verb.

    `name`: its operation in the OpenAPI document. `shown`: makes the answer that the route gives of the verb's, with
    the arguments as they were asked for; `gives`: its type. `names`: of arguments that the route calls otherwise.
    `also`: parameters in place of the verb's, or for `shown` beside them, each with its type and default; they go
    before what a body has. `room_as_given`: call the verb with the room as it is given first, since that is most often
    an id, and looking it up takes as long as a small call; only for a verb that raises `UnknownRoom` before it does
    anything. `bulk`: the body may be large. `schema`: what the schema of the body says beyond its fields, as
    Pydantic takes it. `options`: of the route; with the status 204 it answers nothing.
    """
    names = {**_NAMES, **names}
    form = _Form(verb, names, also, bulk=bulk, schema=schema)
    empty = options.get("status_code") == _NOTHING
    if form.body is not None:
        options["openapi_extra"] = bodies.described(form.body, required=form.needs_body)

    async def handler(**given: Any) -> Any:
        lore, viewer, caller = given.pop("lore"), given.pop("viewer", None), given.pop("caller", None)
        arguments = form.read(given)
        if any(arguments.get(stored_name) for stored_name in verb.stored):
            caller.need("write")

        async def call(called: RoomNames) -> Any:
            return await verb(lore, viewer, **await resolved(verb, arguments, lore, called, names))

        if room_as_given and viewer is None:
            try:
                answer = await call(RoomNames(lore, viewer, as_given=True))
            except UnknownRoom:
                answer = await call(RoomNames(lore, viewer))
        else:
            answer = await call(RoomNames(lore, viewer))
        return None if empty else answer if shown is None else shown(lore, answer, arguments)

    handler.__name__, handler.__doc__ = name, verb.help.en
    signature = inspect.Signature(form.parameters, return_annotation=None if empty else gives or verb.answer)
    handler.__signature__ = signature  # type: ignore[attr-defined]
    method, path = form.address
    router.add_api_route(path.removeprefix(router.prefix), handler, methods=[method], **options)


def add_routes(router: Router, verbs: Iterable[Verb], special: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Add the routes of the verbs of a noun, those without a parameter in the path first, as others would take them for
    its value. `special`: by the verb's name, what `add_route` takes; None if its route is written out."""
    for verb in sorted(verbs, key=lambda each: bool(each.in_path)):
        options = special.get(verb.name, {"name": verb.name.replace(".", "_")})
        if verb.route and options is not None:
            add_route(router, verb, **options)


class _Form:
    """The places of a verb's arguments in a route: its path, its query, its body."""

    def __init__(
        self, verb: Verb, names: Mapping[str, str], also: Mapping[str, tuple[Any, Any]], *, bulk: bool, schema: Any
    ) -> None:
        method, path = verb.route.split()
        for argument in verb.in_path:
            path = path.replace(f"{{{argument.name}}}", f"{{{names.get(argument.name, argument.name)}:id}}")
        self.address = method, path
        others = [each for each in verb.arguments if each not in verb.in_path]
        self._own = {named: name for name, named in names.items()}
        self._forms = {each.name: each.form for each in others if isinstance(each.form, Text)}
        self.body = body_of(verb, names, schema) if others and method not in ("GET", "DELETE") else None
        self.needs_body = bool(verb.some_of) or any(each.is_needed for each in others)
        self.parameters = [_parameter("lore", _LORE[verb.scope])]
        self.parameters += [_parameter("viewer", ShownTo)] if verb.viewer else []
        self.parameters += [_parameter("caller", Annotated[Caller, Depends(caller_of)])] if verb.stored else []
        self.parameters += [_parameter(each.name, _in_path(each, names.get(each.name))) for each in verb.in_path]
        if self.body is not None:
            reads = bodies.body_of if self.needs_body else bodies.body_if_any_of
            read = reads(self.body, within=Bounds.bulk if bulk else Bounds.small)
            self.parameters.append(_parameter("body", Annotated[Any, Depends(read)]))
        else:
            query = [each for each in others if each.name not in also]
            self.parameters += [_in_query(each, names.get(each.name)) for each in query]
        self.parameters += [_parameter(name, kind, default) for name, (kind, default) in also.items()]

    def read(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that a request gave, by name. Raise `InvalidInput` for a text of the body that is too
        long, also if the query has one in its place."""
        arguments = {name: value for name, value in given.items() if value is not None}
        if (body := arguments.pop("body", None)) is not None:
            fields_sent = {
                self._own.get(name, name): value for name, value in body.model_dump(exclude_unset=True).items()
            }
            for name in fields_sent.keys() & arguments.keys():
                most = getattr(self._forms.get(name), "most", None)
                if isinstance(most, int) and is_longer(fields_sent[name], most):
                    raise InvalidInput("body_field_too_long", name=name, most=most)
            return fields_sent | arguments
        return arguments


_NOTHING = 204


def body_of(verb: Verb, names: Mapping[str, str] = MappingProxyType({}), schema: Any = None) -> type[BaseModel]:
    """Return the model of the body with the arguments that the path does not hold. `names`: of arguments that the body
    calls otherwise. `schema`: what its schema says beyond its fields."""
    fields = {
        names.get(argument.name, argument.name): _field(argument)
        for argument in verb.arguments
        if argument not in verb.in_path
    }
    name = "".join(part.capitalize() for part in reversed(verb.name.split(".")))
    made: Any = create_model
    base: Any = _base(verb)
    if schema is not None:
        base = type(name, (base,), {"__module__": __name__, "model_config": ConfigDict(json_schema_extra=schema)})
    form: type[BaseModel] = made(name, __base__=base, __doc__=verb.help.en, __module__=__name__, **fields)
    return form


def _base(verb: Verb) -> type[Body]:
    """Return the base of a body, which checks that one of the arguments is given which the verb needs some of. Null is
    an argument too, if it takes something away. A room may have its other names."""
    base = (
        OfRoom if any(argument.form in _NAMED and argument not in verb.in_path for argument in verb.arguments) else Body
    )
    if not verb.some_of:
        return base
    clearing = [name for name in verb.some_of if verb[name].clears]
    setting = [name for name in verb.some_of if name not in clearing]

    def schema(written: dict[str, Any]) -> None:
        some = needs_one(*setting)
        some["allOf"][0]["anyOf"] += [{"required": [name]} for name in clearing]
        written.update(some)

    class Changing(base):  # type: ignore[valid-type, misc]
        model_config = ConfigDict(json_schema_extra=schema)

        @model_validator(mode="after")
        def _something(self) -> "Changing":
            cleared = self.model_fields_set.intersection(clearing)
            if not cleared and all(getattr(self, name) is None for name in verb.some_of):
                empties = "; '' or [] empties a text or a list, null a time or a number" if clearing else ""
                raise ValueError(f"give at least one of {', '.join(verb.some_of)}{empties}")
            return self

    return Changing


class RoomNames:
    """The ids of rooms, and scopes with them, by the names that a viewer may use. Each is looked up once. `as_given`:
    rooms are not looked up."""

    def __init__(self, lore: Lore, viewer: str | None, *, as_given: bool = False) -> None:
        self._lore, self._viewer, self._as_given = lore, viewer, as_given
        self._known: dict[tuple[str, str], str] = {}

    async def scope(self, given: str) -> str:
        """Return the scope. Raise as `lore.rooms.scope_named` does."""
        known = self._known.get(("scope", given))
        if known is None:
            known = self._known["scope", given] = await self._lore.rooms.scope_named(given, viewer=self._viewer)
        return known

    async def room(self, given: str) -> str:
        """Return the id; what is given if there is no such room, and with `as_given` in any case. Raise as
        `lore.rooms.named` does."""
        if self._as_given:
            return given
        known = self._known.get(("room", given))
        if known is None:
            known = await self._lore.rooms.named(given, viewer=self._viewer, or_new=True)
            self._known["room", given] = known
        return known


async def resolved(
    verb: Verb,
    given: Mapping[str, Any],
    lore: Lore,
    called: RoomNames,
    names: Mapping[str, str] = _NAMES,
) -> dict[str, Any]:
    """Return the arguments with ids in place of the names of rooms, and times. Raise `InvalidInput` that has the names
    of the route, also if an argument is missing."""
    values = {name: value for name, value in given.items() if name in verb.by_name}
    for argument in verb.arguments:
        value = given.get(argument.name)
        may_be_blank = getattr(argument.form, "blank", False)
        if argument.is_needed and (value is None or (value == "" and not may_be_blank)):
            raise missing(argument, names.get(argument.name, argument.name))
        if value is None:
            continue
        if argument.form is Reference.SCOPE:
            values[argument.name] = await called.scope(value)
        elif argument.form in _ROOMS:
            values[argument.name] = await called.room(value)
        elif isinstance(argument.form, Many) and argument.form.of is Reference.SCOPE:
            values[argument.name] = [await called.scope(scope) for scope in value]
        elif argument.form is Reference.GROUP:
            values[argument.name] = await called.scope(scope_of(value))
        elif isinstance(argument.form, Moment) and isinstance(value, str) and value not in argument.form.words:
            values[argument.name] = read_time(
                lore, names.get(argument.name, argument.name), value, edge=argument.form.edge
            )
        elif isinstance(argument.form, Many) and argument.form.of is Reference.SOURCE:
            values[argument.name] = [
                Source(await called.room(source["room_id"]), source["message_id"]) for source in value
            ]
    _check_span(verb, given, values, lore, names)
    return values


def _check_span(
    verb: Verb, given: Mapping[str, Any], values: Mapping[str, Any], lore: Lore, names: Mapping[str, str]
) -> None:
    """Raise `InvalidInput` if a span of the query ends before it begins. Times of a body are the service's to check."""
    start, end = (argument.name for argument in verb.span) if verb.span else ("", "")
    first, last = values.get(start), values.get(end)
    if first is None or last is None or not isinstance(given[end], str):
        return
    if is_before(read_time(lore, end, given[end]) or last, last, first):
        named = (names.get(end, end), names.get(start, start))
        raise InvalidInput(
            "span_reversed", end=named[0], until=f"{given[end]!r:.60}", start=named[1], since=f"{given[start]!r:.60}"
        )


def _parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _in_path(argument: Argument, name: str | None) -> Any:
    most = MAX_GROUP_CHARS if argument.form is Reference.GROUP else None
    return Annotated[str, Depends(addressed(name or argument.name, argument.help.en.removesuffix("."), most=most))]


_SAME = "group_id, chat_id and conversation_id mean the same."
_LEFT_TO_THE_SERVICE = frozenset({"min_length", "max_length"})
"""Bounds that a query does not check: what is needed and empty is missing, and a choice may be named twice."""


def _in_query(argument: Argument, name: str | None) -> inspect.Parameter:
    if argument.form is Page.SIZE:
        return _parameter(argument.name, PageLimit)
    if argument.form in _ROOMS:
        description = f"{argument.help.en} {_SAME}{' Needed.' if argument.is_needed else ''}"
        return _parameter(argument.name, Annotated[str | None, Depends(query_of_room(description))])
    kind, bounds = _moment(argument.form) if isinstance(argument.form, Moment) else shape(argument.form, _SHAPES)
    left = _LEFT_TO_THE_SERVICE if argument.is_needed else {"max_length"}
    bounds = {name: bound for name, bound in bounds.items() if name not in left}
    kind, default = (kind | None, None) if argument.is_needed or argument.default is None else (kind, argument.default)
    parts = [
        argument.help.en,
        *([f"{TIME_IN_QUERY}."] if isinstance(argument.form, Moment) else []),
        *(["May be repeated."] if isinstance(argument.form, Many) else []),
        *(["Needed."] if argument.is_needed else []),
    ]
    query = Query(alias=name, description=" ".join(parts), **bounds)
    return _parameter(argument.name, Annotated[kind, query], default)


def _moment(form: Moment) -> Shape:
    return (MomentInQuery | Literal[form.words] if form.words else MomentInQuery), {}


def _field(argument: Argument) -> tuple[Any, Any]:
    kind, bounds = shape(argument.form, _SHAPES)
    bounded = Annotated[kind, Field(**bounds)] if bounds else kind
    nullable = bounded | None if argument.default is None and kind not in (TimeOrDay, bodies.Time) else bounded
    default = list(argument.default) if isinstance(argument.default, tuple) else argument.default
    description = f"{argument.help.en} Null takes it away." if argument.clears else argument.help.en
    description += f" {_SAME}" if argument.form in _ROOMS else ""
    description += " room_id, group_id and chat_id mean the same." if argument.form is Reference.CONVERSATION else ""
    return Annotated[nullable, Field(description=description)], ... if argument.is_needed else default


def _text(form: Text) -> Shape:
    """A text is counted in graphemes, which a schema cannot: it says how many code points always fit."""
    shown = ({"maxLength": form.most} if form.most else {}) | ({} if form.blank else {"pattern": r"\S"})
    return str, {"min_length": None if form.blank else 1, "json_schema_extra": shown}


SCOPE_BOUNDS: dict[str, Any] = {
    "min_length": 1,
    "max_length": MAX_SCOPE_CHARS,
    "json_schema_extra": {"pattern": SCOPE_PATTERN},
}
_SHAPES: Shapes = {
    Text: _text,
    Words: lambda form: (str, {"json_schema_extra": {"maxLength": form.most}}),
    Moment: lambda _: (TimeOrDay, {}),
    Time: lambda _: (bodies.Time, {}),
    Reference.SCOPE: lambda _: (str, SCOPE_BOUNDS),
    Reference.SOURCE: lambda _: (SourceForm, {}),
    Page.OFFSET: lambda _: (int, {"ge": 0, "le": MOST}),
}
