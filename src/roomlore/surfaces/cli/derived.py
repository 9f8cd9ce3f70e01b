"""Commands that follow from the table of verbs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from roomlore.core.dates import moment
from roomlore.core.errors import InvalidInput
from roomlore.surfaces.cli.frame import frame_of, scope_named, scope_to_write
from roomlore.surfaces.cli.language import helped
from roomlore.verbs.table import NEEDED, Argument, Choice, Help, Many, Moment, Number, Page, Reference, Verb

if TYPE_CHECKING:
    from roomlore.wiring import Lore

    Shows = Callable[[Lore, Any, Mapping[str, Any], bool], Awaitable[None]]

_USUAL = 50
_CLEARED = Help("Take away its {name}.", "去掉它的 {name}。")
_MAY_BE_CLEARED = Help(" `''` takes it away.", "写 `''` 则去掉。")
PART = Help(" Its beginning or end will do.", "也可以只写开头或结尾。")
_REPEATED = Help(" May be repeated.", "可重复。")
_JSON = Help("As JSON.", "以 JSON 输出。")


def command(
    verb: Verb,
    shows: Shows,
    *,
    names: Mapping[str, str] = MappingProxyType({}),
    without: Collection[str] = (),
    creates: bool = False,
) -> Callable[..., None]:
    """Return the function of a command with the arguments of a verb, except those in `without`, and `--json`.

    `shows`: prints the answer; it gets the open roomlore, the answer, the arguments that were given, and True for JSON.
    `names`: of arguments that the command calls otherwise. `creates`: the database may be made.
    """
    options = [_Option(one, names.get(one.name, one.name)) for one in verb.arguments if one.name not in without]

    def run(ctx: typer.Context, **values: Any) -> None:
        as_json = values.pop("as_json")

        async def work(lore: Lore) -> None:
            given = await _read(lore, verb, options, values)
            await shows(lore, await verb(lore, None, **given), given, as_json)

        _check(verb, options, values)
        frame_of(ctx).run(work, creates=creates)

    parameters = [parameter for one in options for parameter in one.parameters()]
    parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    as_json = Annotated[bool, typer.Option("--json", help=helped(_JSON))]
    parameters.append(_parameter("as_json", as_json, False))
    _become(run, verb, [_parameter("ctx", typer.Context), *parameters])
    return run


def _become(run: Callable[..., None], verb: Verb, parameters: list[inspect.Parameter]) -> None:
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = helped(verb.help)


class _Option:
    """An argument of a verb on the command line, under its name there."""

    def __init__(self, argument: Argument, name: str) -> None:
        self.argument, self.name = argument, name
        self.flag = f"--{name.replace('_', '-')}"
        self.off = f"no_{name}"

    @property
    def can_be_switched_off(self) -> bool:
        return self.argument.clears and isinstance(self.argument.form, Number)

    def flags(self) -> list[str]:
        """Return the option's flag, and the one that takes a number away."""
        return [self.flag, f"--{self.off.replace('_', '-')}"] if self.can_be_switched_off else [self.flag]

    def parameters(self) -> list[inspect.Parameter]:
        """Return the parameters of the function: one, and a flag if a number can be taken away."""
        one = self.argument
        if one.default is NEEDED and one.form is not Page.SIZE:
            part = [PART] if one.form is Reference.MEMORY else []
            return [_parameter(self.name, Annotated[str, typer.Argument(help=helped(one.help, *part))])]
        more = [_REPEATED] if isinstance(one.form, Many) else []
        more += [_MAY_BE_CLEARED] if one.clears and not self.can_be_switched_off else []
        told = typer.Option(self.flag, help=helped(one.help, *more), min=1 if one.form is Page.SIZE else None)
        kind: Any = self._type()
        found = [_parameter(self.name, Annotated[kind, told], self._default())]
        if self.can_be_switched_off:
            cleared = helped(Help(*(text.format(name=self.name) for text in _CLEARED)))
            found.append(_parameter(self.off, Annotated[bool, typer.Option(self.flags()[1], help=cleared)], False))
        return found

    def _type(self) -> Any:
        match self.argument.form:
            case Number():
                return float | None
            case Choice(words):
                return Literal[words] if self.argument.default is not None else Literal[words] | None
            case Many():
                return list[str] | None
            case Page():
                return int
        return str | None if self.argument.default is None else str

    def _default(self) -> Any:
        if self.argument.form is Page.SIZE:
            return _USUAL
        return None if self.argument.default == () else self.argument.default


def _parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=default)


def _check(verb: Verb, options: list[_Option], values: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for options that exclude each other, and if none is given of those that the verb needs some
    of."""
    for one in options:
        if one.can_be_switched_off and values[one.off] and values[one.name] is not None:
            raise InvalidInput(f"Give {one.flags()[0]} or {one.flags()[1]}, not both.")
    some = [one for one in options if one.argument.name in verb.some_of]
    if some and not any(values[one.name] not in (None, []) or values.get(one.off) for one in some):
        flags = [flag for one in some for flag in one.flags()]
        raise InvalidInput(f"Say what to change: {', '.join(flags)}.")


async def _read(lore: Lore, verb: Verb, options: list[_Option], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were given, with ids in place of names, and times in place of words. Raise
    `InvalidInput` in the words of the user."""
    given: dict[str, Any] = {}
    for one in options:
        value = values[one.name]
        if values.get(one.off):
            given[one.argument.name] = None
        elif value not in (None, []):
            given[one.argument.name] = await _value(lore, verb, one, value)
    _check_span(options, values, given)
    return given


async def _value(lore: Lore, verb: Verb, option: _Option, value: Any) -> Any:
    form = option.argument.form
    if form is Reference.SCOPE:
        return await (scope_to_write if verb.scope == "write" else scope_named)(lore, value)
    if form is Reference.MEMORY:
        return (await lore.memories.head(await lore.memories.named(value), viewer=None)).memory_id
    if isinstance(form, Moment):
        now, zone = lore.now(), lore.settings.search.zone
        return moment(option.flag, value, now=now, zone=zone, edge=form.edge, may_come=True) if value else None
    return value


def _check_span(options: list[_Option], values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` if a time that ends something is not after the one that begins it."""
    moments = {one.argument.form.edge: one for one in options if isinstance(one.argument.form, Moment)}
    if moments.keys() != {"start", "end"}:
        return
    begin, end = moments["start"], moments["end"]
    first, last = given.get(begin.argument.name), given.get(end.argument.name)
    if first is not None and last is not None and last <= first:
        told = (values[end.name], values[begin.name])
        raise InvalidInput(f"{end.flag} {told[0]!r:.60} is not after {begin.flag} {told[1]!r:.60}; change one of them.")
