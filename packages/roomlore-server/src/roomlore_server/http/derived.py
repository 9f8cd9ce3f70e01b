"""Routes and bodies that follow from the table of verbs."""

import inspect
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.memory import MAX_SCOPE_CHARS, SCOPE_PATTERN, Source
from roomlore.verbs.table import (
    NEEDED,
    Argument,
    Choice,
    Form,
    Id,
    Many,
    Moment,
    Number,
    Page,
    Reference,
    Text,
    Verb,
    missing,
)
from roomlore.wiring import Lore
from roomlore_server.http import bodies
from roomlore_server.http.bodies import Body, Bounds, TimeOrDay, needs_one
from roomlore_server.http.guard import Admin, Reader, ShownTo, Writer
from roomlore_server.http.paths import MOST, PageLimit, addressed
from roomlore_server.http.routers import Router

_LORE = {"read": Reader, "write": Writer, "admin": Admin}


class SourceForm(BaseModel):
    """A message that supports a memory."""

    model_config = ConfigDict(extra="forbid", strict=True)
    room_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    message_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)


def add_route(router: Router, verb: Verb, name: str, **options: Any) -> None:
    """Add the route of a verb. `name`: its operation in the OpenAPI document. `options`: of the route; with the status
    204 it answers nothing."""
    method, path = verb.route.split()
    for one in verb.in_path:
        path = path.replace(f"{{{one.name}}}", f"{{{one.name}:id}}")
    given = [_parameter("lore", _LORE[verb.scope]), _parameter("viewer", ShownTo)]
    given += [_parameter(one.name, _in_path(one)) for one in verb.in_path]
    others = [one for one in verb.arguments if one not in verb.in_path]
    if method in ("GET", "DELETE"):
        given += [_in_query(one) for one in others]
    elif others:
        form = body_of(verb)
        given.append(_parameter("body", Annotated[Any, Depends(bodies.body_of(form, within=Bounds.bulk))]))
        options["openapi_extra"] = bodies.described(form)
    empty = options.get("status_code") == _NOTHING

    async def handler(**given: Any) -> Any:
        lore, viewer = given.pop("lore"), given.pop("viewer")
        wanted = {name: value for name, value in given.items() if value is not None}
        if (body := wanted.pop("body", None)) is not None:
            wanted |= body.model_dump(exclude_unset=True)
        answer = await verb(lore, viewer, **await resolved(verb, wanted, lore, viewer))
        return None if empty else answer

    gives = None if empty else verb.answer
    handler.__name__, handler.__doc__ = name, verb.help.en
    handler.__signature__ = inspect.Signature(given, return_annotation=gives)  # type: ignore[attr-defined]
    router.add_api_route(path, handler, methods=[method], **options)


_NOTHING = 204


def body_of(verb: Verb) -> type[BaseModel]:
    """Return the model of the body with the arguments that the path does not hold."""
    fields = {one.name: _field(one) for one in verb.arguments if one not in verb.in_path}
    name = "".join(part.capitalize() for part in reversed(verb.name.split(".")))
    made: Any = create_model
    form: type[BaseModel] = made(name, __base__=_base(verb), __doc__=verb.help.en, __module__=__name__, **fields)
    return form


def _base(verb: Verb) -> type[Body]:
    """Return the base of a body, which checks that one of the arguments is given which the verb needs some of. Null is
    an argument too, if it takes something away."""
    if not verb.some_of:
        return Body
    clearing = [name for name in verb.some_of if verb[name].clears]
    setting = [name for name in verb.some_of if name not in clearing]

    def schema(written: dict[str, Any]) -> None:
        some = needs_one(*setting)
        some["allOf"][0]["anyOf"] += [{"required": [name]} for name in clearing]
        written.update(some)

    class Changing(Body):
        model_config = ConfigDict(json_schema_extra=schema)

        @model_validator(mode="after")
        def _something(self) -> "Changing":
            cleared = self.model_fields_set.intersection(clearing)
            if not cleared and all(getattr(self, name) is None for name in verb.some_of):
                raise ValueError(f"give at least one of {', '.join(verb.some_of)}")
            return self

    return Changing


async def resolved(verb: Verb, given: Mapping[str, Any], lore: Lore, viewer: str | None) -> dict[str, Any]:
    """Return the arguments with ids in place of the names of rooms. Raise `InvalidInput` if one is missing."""
    found = dict(given)
    for one in verb.arguments:
        value = given.get(one.name)
        if value is None:
            if one.default is NEEDED and one.form is not Page.SIZE:
                raise missing(one)
            continue
        if one.form is Reference.SCOPE:
            found[one.name] = await lore.rooms.scope_named(value, viewer=viewer)
        elif isinstance(one.form, Many) and one.form.of is Reference.SOURCE:
            rooms = {source["room_id"] for source in value}
            ids = {room: await lore.rooms.named(room, viewer=viewer, or_new=True) for room in rooms}
            found[one.name] = [Source(ids[source["room_id"]], source["message_id"]) for source in value]
    return found


def _parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _in_path(one: Argument) -> Any:
    return Annotated[str, Depends(addressed(one.name, one.help.en.removesuffix(".")))]


def _in_query(one: Argument) -> inspect.Parameter:
    if one.form is Page.SIZE:
        return _parameter(one.name, PageLimit)
    kind, bounds = _shape(one.form)
    needed = one.default is NEEDED
    kind, default = (kind | None, None) if needed or one.default is None else (kind, one.default)
    query = Query(description=f"{one.help.en} Needed." if needed else one.help.en, **bounds)
    return _parameter(one.name, Annotated[kind, query], default)


def _field(one: Argument) -> tuple[Any, Any]:
    kind, bounds = _shape(one.form)
    bounded = Annotated[kind, Field(**bounds)] if bounds else kind
    nullable = bounded | None if one.default is None and kind is not TimeOrDay else bounded
    default = list(one.default) if isinstance(one.default, tuple) else one.default
    told = f"{one.help.en} Null takes it away." if one.clears else one.help.en
    return Annotated[nullable, Field(description=told)], ... if default is NEEDED else default


def _shape(form: Form) -> tuple[Any, dict[str, Any]]:
    """Return the type of a form, and its bounds as `Field` and `Query` take them. A text is counted in graphemes, which
    a schema cannot: it says how many code points always fit, and the service counts."""
    match form:
        case Text(most, blank):
            shown = {"maxLength": most} if blank else {"maxLength": most, "pattern": r"\S"}
            return str, {"min_length": None if blank else 1, "json_schema_extra": shown}
        case Id(most, blank):
            return str, {"min_length": 0 if blank else 1, "max_length": most}
        case Number(low, high):
            return float, {"ge": low, "le": high}
        case Choice(words):
            return Literal[words], {}
        case Many(of, most):
            kind, bounds = _shape(of)
            return list[Annotated[kind, Field(**bounds)] if bounds else kind], {"max_length": most}  # type: ignore[misc]
        case Moment():
            return TimeOrDay, {}
        case Reference.SCOPE:
            return str, {
                "min_length": 1,
                "max_length": MAX_SCOPE_CHARS,
                "json_schema_extra": {"pattern": SCOPE_PATTERN},
            }
        case Reference.SOURCE:
            return SourceForm, {}
        case Page.OFFSET:
            return int, {"ge": 0, "le": MOST}
    return _shape(Id())
