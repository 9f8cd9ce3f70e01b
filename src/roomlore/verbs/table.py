"""Verbs, their arguments, and the forms of arguments."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from roomlore.core.dates import Edge
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS

if TYPE_CHECKING:
    from roomlore.wiring import Lore


class Help(NamedTuple):
    """A text for people and models, in English and Chinese."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text of at most `most` characters as people count them: a number, the setting that has it, or None for no limit
    of its own. `blank`: it may be empty, or spaces alone."""

    most: int | Literal["max_text_chars"] | None
    blank: bool = True


@dataclass(frozen=True, slots=True)
class Words:
    """A question, or a few words to look for, of at most `most` characters."""

    most: int


@dataclass(frozen=True, slots=True)
class Id:
    """An id of at most `most` characters. `blank`: it may be empty. `pattern`: what it looks like, if it has a form of
    its own, which the service checks."""

    most: int = MAX_ID_CHARS
    blank: bool = False
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `low` to `high`. `above`: more than `low`."""

    low: float
    high: float
    above: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Flag:
    """Yes or no."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these words. `open`: or another, which the service checks."""

    words: tuple[str, ...]
    open: bool = False


@dataclass(frozen=True, slots=True)
class Many:
    """A list of at most `most` values of one form."""

    of: "Form"
    most: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A time or a day. `edge`: where a day counts. `words`: they may stand in its place."""

    edge: Edge
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Time:
    """A time of a message, such as an export has it."""


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object."""


class Reference(Enum):
    """Something stored, which faces also take by other names than its id."""

    SCOPE = "whom a memory is about: the scope of a person or an agent, or of a group by the id or the name of its room"
    GROUP = "the same, and a group by the id or the name of its room alone"
    ROOM = "a room by its id or its name"
    NEW_ROOM = "the same, or the id of a room that is not there yet"
    CONVERSATION = "a session by the id of its room, which may be new"
    MEMORY = "a memory by the id of any version"
    VERSION = "one version of a memory"
    EVOLUTION = "an evolution"
    SOURCE = "a message by its id and the id or the name of its room"


class Page(Enum):
    """The part of a list. Each face has its own number of items and its own most."""

    SIZE = "how many items"
    OFFSET = "how many items are before it"


Form = Text | Words | Id | Number | Whole | Flag | Choice | Many | Moment | Time | Object | Reference | Page


class _Needed(Enum):
    MARK = "needed"


NEEDED = _Needed.MARK
"""Marks an argument that must be given."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a verb, with its help in English and Chinese. With the default None it may be null, which means
    that it is not given; if it `clears`, null takes away what is there."""

    name: str
    form: Form
    en: str
    zh: str
    default: Any = NEEDED
    clears: bool = False

    @property
    def help(self) -> Help:
        return Help(self.en, self.zh)

    @property
    def is_needed(self) -> bool:
        """True if a caller must give it. The size of a page each face has a default for."""
        return self.default is NEEDED and self.form is not Page.SIZE


def missing(argument: Argument, name: str) -> InvalidInput:
    """Return the error for an argument that is needed and was not given. `name`: what the face calls it."""
    if argument.form in (Reference.SCOPE, Reference.GROUP):
        return InvalidInput("field_missing_scope", field=name)
    if isinstance(argument.form, Moment):
        return InvalidInput("field_missing_time", field=name)
    if isinstance(argument.form, Words):
        return InvalidInput("field_missing_query", field=name)
    return InvalidInput("field_missing", field=name)


@dataclass(frozen=True)
class Verb:
    """A call that roomlore offers, with its help in English and Chinese.

    `name`: its noun and its verb, such as 'facts.add'. `scope`: what a key must have. `run`: calls the services with
    the viewer and those of the arguments that were given; it returns an `answer`. `viewer`: False if it takes none and
    tells everything. `some_of`: arguments of which at least one must be given. `stored`: those that are kept, for which
    a key needs the scope write too. `route`: its method and path over HTTP, '' if HTTP has none of its own. `tool`: its
    name in MCP, '' if none. `command`: its words on the command line, '' if none.
    """

    name: str
    en: str
    zh: str
    _: KW_ONLY
    scope: Literal["read", "write", "admin"]
    arguments: tuple[Argument, ...]
    run: Callable[..., Awaitable[Any]]
    answer: Any
    viewer: bool = True
    some_of: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    route: str = ""
    tool: str = ""
    command: str = ""

    @property
    def help(self) -> Help:
        return Help(self.en, self.zh)

    def __getitem__(self, name: str) -> Argument:
        """Return the argument of this name. Raise `KeyError`."""
        return self.by_name[name]

    @cached_property
    def by_name(self) -> Mapping[str, Argument]:
        return {argument.name: argument for argument in self.arguments}

    @cached_property
    def in_path(self) -> tuple[Argument, ...]:
        """The arguments that the path of the route holds."""
        return tuple(argument for argument in self.arguments if f"{{{argument.name}}}" in self.route)

    @cached_property
    def span(self) -> tuple[Argument, Argument] | None:
        """The first arguments that say when something begins and when it ends, None if it has not both."""
        edges = {
            argument.form.edge: argument for argument in reversed(self.arguments) if isinstance(argument.form, Moment)
        }
        return (edges["start"], edges["end"]) if edges.keys() == {"start", "end"} else None

    async def __call__(self, lore: "Lore", viewer: str | None, **given: Any) -> Any:
        """Return the answer for a viewer, None for everything. `given`: the arguments that were given, by name; others
        have their defaults, but None is left out."""
        return await self.run(lore, viewer, **{**self._defaults, **given})

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        return {
            argument.name: argument.default for argument in self.arguments if argument.default not in (None, NEEDED)
        }


AdminVerb = partial(Verb, scope="admin", viewer=False)
"""A verb of administrators, who are told everything."""
