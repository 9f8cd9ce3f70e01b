"""The frame of every command: the global options, an open roomlore, and errors in one sentence.

The modules of this package import settings, services and wiring where a command runs, so that `--help` answers at once.
"""

from __future__ import annotations

import gc
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from roomlore.core import DEFAULT_TENANT
from roomlore.core.errors import NotFound, RoomloreError, UnknownRoom
from roomlore.core.texts import sentences
from roomlore.surfaces.cli.language import Shown, say, translated

if TYPE_CHECKING:
    from roomlore.settings import Settings
    from roomlore.sync import SyncLore
    from roomlore.wiring import Lore

T = TypeVar("T")

ShownTo = Annotated[
    str | None,
    typer.Option(help="Show only what `room:ROOM` or `user:NAME` may see, by name or id; by default everything."),
]

OnlyRoom = Annotated[str | None, typer.Argument(metavar="ROOM", help="This room only, by id or name.")]

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]

UsageError: type[Exception] = typer.BadParameter.__mro__[1]


@dataclass(frozen=True, slots=True)
class Frame:
    """The global options."""

    config: str | None = None
    database: str | None = None
    tenant: str = DEFAULT_TENANT

    def settings(self, *, quiet: bool = False, **arguments: Any) -> Settings:
        """Return the settings, with the command line's arguments on top. The log goes to standard error from here on.
        `quiet`: without lines of the level info, unless `log_level` is set: a command prints its result."""
        import logging

        from roomlore.settings import Settings
        from roomlore.surfaces import logs
        from roomlore.surfaces.cli import show

        if not quiet:
            collect_garbage()
        settings = Settings(self.config, database_url=self.database, **arguments)
        show.times_in(settings.search.zone)
        level = "warning" if quiet and settings.source("log_level") == "default" else settings.server.log_level
        logs.configure(form=settings.server.log_format, level=level, at_once=not quiet)
        for name in settings.ignored:
            logging.getLogger(__name__).warning("no setting of roomlore, ignored", extra={"variable": name})
        return settings

    def line(self, *words: str) -> str:
        """Return a command as it can be typed here, with the global options that were given."""
        given = {"--config": self.config, "--db": self.database, "--tenant": self.tenant}
        usual = (None, DEFAULT_TENANT)
        options = [part for pair in given.items() if pair[1] not in usual for part in pair]
        return shlex.join(["roomlore", *map(str, options), *words])

    def place(self) -> str:
        """Return the database as text for people, with its password masked."""
        from roomlore.settings import Settings

        return _place(Settings(self.config, database_url=self.database))

    def run(self, work: Callable[[Lore], Awaitable[T]], *, creates: bool = False, **arguments: Any) -> T:
        """Open roomlore for one piece of work, without background indexing. Raise `NotFound` if there is no such
        database, unless `creates` allows to make it."""
        import asyncio

        from roomlore.wiring import open_for_command

        settings = self.settings(quiet=True, **arguments)
        if not creates:
            _check_there(settings)

        async def inside() -> T:
            async with open_for_command(settings, tenant=self.tenant) as lore:
                collect_garbage()
                try:
                    return await work(lore)
                except UnknownRoom as error:
                    meant = await lore.rooms.meant(error.room_id, viewer=None)
                    text = sentences(str(error), meant)
                    raise NotFound("looked_for_and_listed", error=text, place=_place(settings)) from error
                except NotFound as error:
                    raise NotFound("looked_for_in", error=error, place=_place(settings)) from error

        return asyncio.run(inside())

    def is_missing(self) -> bool:
        """Return True if the database is a file that does not exist."""
        from roomlore.settings import Settings
        from roomlore.wiring import is_missing

        return is_missing(Settings(self.config, database_url=self.database))

    @contextmanager
    def opened(self, **arguments: Any) -> Iterator[SyncLore]:
        """Open roomlore with its background work, on its own event loop, for an interactive command."""
        from roomlore.sync import open_sync

        with open_sync(settings=self.settings(**arguments), tenant=self.tenant) as lore:
            yield lore


def collect_garbage() -> None:
    """Have Python look for garbage again, which the program stops while it loads modules, but not among these."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _place(settings: Settings) -> str:
    from roomlore.settings import row

    return row("database_url", settings.database.database_url, "").value


def _check_there(settings: Settings) -> None:
    from roomlore.wiring import is_missing

    if is_missing(settings):
        raise NotFound("database_missing_import", place=_place(settings))


_PREFIX = "Value error, "
"""The words before the message of a validator, which tell a user nothing."""


class Group(Shown, TyperGroup):
    """Commands that print an error as one sentence on standard error and exit with 1. A global option after the command
    is an error that says where it belongs."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            self._place_option(error)
            self._in_plain_words(error)
            raise
        except RoomloreError as error:
            sys.stderr.write(f"roomlore: {translated(error)}\n")
            raise typer.Exit(1) from error

    def _in_plain_words(self, error: Any) -> None:
        error.message = error.message.replace(_PREFIX, "").replace("'search'", "'ask'")

    def _place_option(self, error: Any) -> None:
        name, ctx = getattr(error, "option_name", None), error.ctx
        own = {option: param.metavar for param in self.params for option in param.opts}
        if name in own and ctx is not None and ctx.parent is not None and "No such option" in error.message:
            command = ctx.command_path.removeprefix(ctx.find_root().command_path).strip()
            error.message = f"{name} goes before the command: roomlore {name} {own[name] or ''} {command}"
            error.possibilities = None


def frame_of(ctx: typer.Context) -> Frame:
    frame = ctx.obj
    assert isinstance(frame, Frame)
    return frame


async def with_id(lore: Lore, given: str) -> tuple[str, str | None]:
    """Return a text such as 'room:Crew' with the room's id in place of its name, and the room if there is none such.
    Any other text stays as it is. Raise `InvalidInput` if several rooms have the name."""
    kind, _, room = given.partition(":")
    if kind not in ("room", "group") or not room:
        return given, None
    try:
        return f"room:{await lore.rooms.named(room, viewer=None)}", None
    except NotFound:
        return given, room


async def scope_named(
    lore: Lore, given: str, *, group: bool = False, refuse: Callable[[str], object] | None = None
) -> str:
    """Return a scope to read, as `naming.scope_about` does, also of `user:Anna` by the name of a person; whom it takes
    for the person is said on standard error."""
    from roomlore.wiring.naming import scope_about

    scope = await scope_about(
        lore, given, viewer=None, group=group, person=lambda name: person_named(lore, name), refuse=refuse or _unknown
    )
    kind, _, name = scope.partition(":")
    return f"user:{await person_named(lore, name)}" if kind == "user" else scope


def _unknown(given: str) -> None:
    """Raise `NotFound` for a name that nobody has, or `InvalidInput` for what is no scope."""
    from roomlore.core.memory.memory import check_scope

    if ":" in given:
        check_scope(given)
    raise NotFound("name_unknown", name=f"{given!r:.80}")


async def person_named(lore: Lore, name: str) -> str:
    """Return the id of a person in place of a name that only one has, and say on standard error whom it takes."""
    from roomlore.surfaces.cli import show

    person = await lore.privacy.person_named(name)
    if person != name:
        notice = say("Taking {name} as the name of {scope}.", name=show.inert(name), scope=show.inert(f"user:{person}"))
        typer.echo(notice, err=True)
    return person


async def scope_to_write(lore: Lore, given: str, *, group: bool = False) -> str:
    """Return a scope as `scope_named` does. Raise `NameNotId` for the name of a person: anybody may take any name, even
    that of an id."""
    from roomlore.wiring.naming import scope_about

    async def person(name: str) -> str:
        await lore.privacy.check_person(name)
        return name

    scope = await scope_about(lore, given, viewer=None, group=group, person=person)
    kind, _, name = scope.partition(":")
    return f"user:{await person(name)}" if kind == "user" else scope


async def scope_for(lore: Lore, given: str, *, writes: bool, group: bool) -> str:
    """Return a scope to read, to write to, or for a new fact."""
    if writes and not group:
        return await _scope_to_remember(lore, given)
    return await (scope_to_write if writes else scope_named)(lore, given, group=group)


async def _scope_to_remember(lore: Lore, given: str) -> str:
    """Return the scope of a new fact: a name alone is read as in `scope_named`. In a terminal it asks whether a person
    is meant where nobody has the id after `user:`."""
    from roomlore.ports.people import people_meant
    from roomlore.surfaces.cli import show
    from roomlore.wiring.naming import scope_about

    scope = await scope_about(lore, given, viewer=None, person=lambda name: person_named(lore, name))
    kind, _, name = scope.partition(":")
    if kind != "user" or not sys.stdin.isatty():
        return scope
    async with lore.storage.reading(lore.tenant) as work:
        people = await people_meant(work, name, viewer=None, now=lore.now())
    for person, called in people.items():
        asked = {"name": show.inert(name), "scope": show.inert(f"user:{person}"), "called": show.inert(called)}
        if typer.confirm(
            say("Nobody has the id {name}. Is {scope} meant ({called})?", **asked), default=None, err=True
        ):
            return f"user:{person}"
    return scope


async def scope_meant(lore: Lore, scope: str) -> str:
    """Return a sentence which says that there is no room, or nobody, with the id of a scope, and which may be meant; ''
    if there is."""
    from roomlore.wiring.naming import scope_meant

    return await scope_meant(lore, scope, viewer=None)


async def room_to_write(lore: Lore, given: str | None) -> str | None:
    """Return the id of the room with this id or name, or the text itself as the id of a new room. Raise
    `InvalidInput` if several rooms have the name."""
    return None if given is None else await lore.rooms.named(given, viewer=None, or_new=True)


async def room_given(lore: Lore, given: str | None) -> str | None:
    """Return the id of a room that may be left out."""
    return None if given is None else await lore.rooms.named(given, viewer=None)


async def viewer_of(lore: Lore, given: str | None) -> str | None:
    """Return a viewer: room:Crew, user:Anna, or the name or id of a room or a person alone, with the id in place of a
    name. Raise `InvalidInput`, and `NotFound` if there is no such room, or nobody who wrote or was told to be a member
    has the id."""
    from roomlore.core.audience import check_viewer

    if given is None:
        return None
    kind, _, name = given.partition(":")
    known = f"group:{name}" if kind == "room" and name else given
    scope = await scope_named(lore, known, refuse=check_viewer)
    viewer = check_viewer(scope.replace("group:", "room:", 1) if scope.startswith("group:") else scope)
    if viewer.kind == "room":
        return f"room:{await lore.rooms.named(viewer.id, viewer=None)}"
    if unknown := await scope_meant(lore, str(viewer)):
        raise NotFound("viewer_unknown", why=unknown)
    return str(viewer)
