"""A tool: what a model reads of it, what it takes and gives, and what it does."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from mcp import types

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.models import check_scope
from roomlore.surfaces.mcp.answers import Answer
from roomlore.surfaces.mcp.arguments import Arguments
from roomlore.wiring import Lore


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who calls tools: the roomlore of their tenant, whether they may change memories, and whose memories are meant
    where a call does not say."""

    lore: Lore
    may_write: bool = True
    scope: str | None = None

    def whose(self, scope: str | None) -> str:
        """The scope of a call; `InvalidInput` where neither it nor the server names one."""
        if not scope and self.scope is None:
            raise InvalidInput("scope is missing: say whose memories, as user:<id>, agent:<id> or group:<id>.")
        return check_scope(scope or self.scope or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`about`: what a model reads. `replaces`: it takes out of force what is there, as the hint for hosts says.
    `if_lost`: what to do where nothing has the id."""

    name: str
    title: str
    about: str
    takes: type[Arguments]
    gives: type[Answer]
    run: Callable[[Visitor, Any], Awaitable[Answer]]
    writes: bool = False
    replaces: bool = False
    if_lost: str = ""

    def declared(self) -> types.Tool:
        """As MCP lists it."""
        return _declared(self)


@cache
def _declared(tool: Tool) -> types.Tool:
    """Made once: over HTTP each request has a server of its own."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.about,
        input_schema=_lean(tool.takes.model_json_schema()),
        output_schema=_lean(tool.gives.model_json_schema(mode="serialization")),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.replaces,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def _lean(schema: Any) -> Any:
    """Without what repeats the names of fields and without null, which means the same as to leave a field out: a model
    reads every word of it."""
    if isinstance(schema, list):
        return [_lean(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if not (name == "title" and isinstance(value, str))}
    choices = kept.get("anyOf", [])
    if {"type": "null"} in choices:
        kept = {name: value for name, value in kept.items() if name != "anyOf" and (name, value) != ("default", None)}
        kept = next(choice for choice in choices if choice != {"type": "null"}) | kept
    return {name: _lean(value) for name, value in kept.items()}
