"""What the table of verbs is made of: verbs, their arguments, and the forms of these."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from roomlore.core.dates import Edge
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS

if TYPE_CHECKING:
    from roomlore.wiring import Lore


class Help(NamedTuple):
    """What people and models read, in English and Chinese."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text of at most `most` characters as people count them. `blank`: it may be empty, or spaces alone."""

    most: int
    blank: bool = True


@dataclass(frozen=True, slots=True)
class Id:
    """An id of at most `most` characters. `blank`: it may be empty."""

    most: int = MAX_ID_CHARS
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `low` to `high`."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these words."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """A list of at most `most` values of one form."""

    of: "Form"
    most: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A time or a day. `edge`: where a day counts."""

    edge: Edge


class Reference(Enum):
    """Something stored, which faces also take by other names than its id."""

    SCOPE = "whom a memory is about: the scope of a person or an agent, or of a group by the id or the name of its room"
    MEMORY = "a memory by the id of any version"
    SOURCE = "a message by its id and the id or the name of its room"


class Page(Enum):
    """The part of a list. Each face has its own number of items and its own most."""

    SIZE = "how many items"
    OFFSET = "how many items are before it"


Form = Text | Id | Number | Choice | Many | Moment | Reference | Page


class _Needed(Enum):
    MARK = "needed"


NEEDED = _Needed.MARK
"""Marks an argument that must be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a verb. With the default None it may be null, which means that it is not given; if `clears`, null
    takes away what is there."""

    name: str
    form: Form
    help: Help
    default: Any = NEEDED
    clears: bool = False


def missing(argument: Argument) -> InvalidInput:
    """Return the error for an argument that is needed and was not given."""
    if argument.form is Reference.SCOPE:
        return InvalidInput(f"{argument.name} is missing: say whose memories, as user:<id>, agent:<id> or group:<id>.")
    return InvalidInput(f"{argument.name} is missing.")


@dataclass(frozen=True, kw_only=True)
class Verb:
    """What a caller can ask of roomlore.

    `name`: its noun and its verb, such as 'facts.add'. `scope`: what a key must have. `run`: calls the services with
    the viewer and those of the arguments that were given; it returns an `answer`. `some_of`: arguments of which at
    least one must be given. `route`: its method and path over HTTP, '' if HTTP has none of its own. `tool`: its name in
    MCP, '' if none. `command`: its words on the command line, '' if none.
    """

    name: str
    help: Help
    scope: Literal["read", "write", "admin"]
    arguments: tuple[Argument, ...]
    run: Callable[..., Awaitable[Any]]
    answer: Any
    some_of: tuple[str, ...] = ()
    route: str = ""
    tool: str = ""
    command: str = ""

    def __getitem__(self, name: str) -> Argument:
        """Return the argument of this name. Raise `KeyError`."""
        return self.by_name[name]

    @cached_property
    def by_name(self) -> Mapping[str, Argument]:
        return {one.name: one for one in self.arguments}

    @cached_property
    def in_path(self) -> tuple[Argument, ...]:
        """The arguments that the path of the route holds."""
        return tuple(one for one in self.arguments if f"{{{one.name}}}" in self.route)

    async def __call__(self, lore: "Lore", viewer: str | None, **given: Any) -> Any:
        """Return the answer for a viewer, None for everything. `given`: the arguments that were given, by name."""
        return await self.run(lore, viewer, **given)
