"""Commands that follow from the table of verbs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from enum import StrEnum
from keyword import iskeyword
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from roomlore.core.dates import Edge, is_before, moment
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import Source
from roomlore.core.records import parse_time
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Frame, ShownTo, frame_of, room_to_write, scope_for, viewer_of
from roomlore.surfaces.cli.given import json_object, text_in, text_of
from roomlore.surfaces.cli.language import helped
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.verbs.table import (
    NEEDED,
    Argument,
    Choice,
    Flag,
    Help,
    Id,
    Many,
    Moment,
    Number,
    Object,
    Page,
    Reference,
    Text,
    Time,
    Verb,
    Whole,
    Words,
)

if TYPE_CHECKING:
    from datetime import datetime

    from roomlore.wiring import Lore

    Before = Callable[[Lore, Mapping[str, Any]], Awaitable[Any]]
    Checks = Callable[[Mapping[str, Any]], None]
    Shows = Callable[[Lore, Any, "Call"], Awaitable[None]]
    Part = Callable[[Any, "Call"], Any]

_USUAL = 50
_OLDER = "offline"
"""An older name of the mode rules, which commands take and do not show."""
_CLEARED = Help("Take away its {name}.", "去掉它的 {name}。")
_MAY_BE_CLEARED = Help(" `''` takes it away.", "写 `''` 则去掉。")
PART = Help(" Four characters of its beginning or end will do.", "也可以只写开头或结尾的四个字符以上。")
_PIPED = Help(" `-` is standard input.", "`-` 表示标准输入。")
_JSON = Help("As JSON.", "以 JSON 输出。")


class Call(NamedTuple):
    """A call of a command. `gives`: the arguments for the verb. `asked`: the same as they were typed. `before`: what
    the command read first. `own`: the options that it alone has. `frame`: the global options."""

    gives: Mapping[str, Any]
    asked: Mapping[str, Any]
    before: Any
    own: Mapping[str, Any]
    frame: Frame


def command(
    verb: Verb,
    shows: Shows,
    *,
    in_json: Part | None = None,
    after: Shows | None = None,
    names: Mapping[str, str] = MappingProxyType({}),
    also: Mapping[str, tuple[Any, Any]] = MappingProxyType({}),
    without: Collection[str] = (),
    placed: Collection[str] = (),
    spread: Collection[str] = (),
    piped: Collection[str] = (),
    bounded: bool = True,
    checks: Checks | None = None,
    start: Callable[[typer.Context, bool], None] | None = None,
    before: Before | None = None,
    creates: bool = False,
    for_viewer: bool = False,
) -> Callable[..., None]:
    """Return the function of a command with the arguments of a verb, and `--json`, except those in `without`.

    `shows`: prints the answer for people. `in_json`: returns what of the answer is JSON, by default all. `after`: what
    is done in either case, behind it. `names`: of arguments that the command calls otherwise. `also`: options that the
    command alone has, for `shows`, each with its type and default. `placed`: arguments that have a place, though they
    may be left out. `spread`: those of several words that need no quotes, beside what is looked for. `piped`: those for
    which `-` is standard input. `bounded`: numbers are checked as they are read, else by the service. `checks`: raises
    an error for options that do not go together, before anything is read. `start`: what is done, as JSON or not, where
    the scope is left out. `before`: reads what `shows` compares the
    answer with. `creates`: the database may be made. `for_viewer`: with the option `--viewer`.
    """
    wanted = [argument for argument in verb.arguments if argument.name not in without]
    options = [
        _Option(
            argument,
            names.get(argument.name, argument.name),
            placed=argument.name in placed,
            spread=argument.name in spread,
            piped=argument.name in piped,
            bounded=bounded,
            left_out=start is not None and argument.name == "scope",
        )
        for argument in wanted
    ]

    def run(ctx: typer.Context, **values: Any) -> None:
        if ctx.invoked_subcommand is not None:
            return  # of a group, whose own command it is
        if checks:
            checks(values)
        as_json, whom = values.pop("as_json", False), values.pop("viewer", None)
        if start and values[names.get("scope", "scope")] is None:
            start(ctx, as_json)
            return
        own = {name: values.pop(name) for name in also}
        _check(verb, options, values)
        arguments = {option.argument.name: option.read(values[option.name]) for option in options}

        frame = frame_of(ctx)

        async def work(lore: Lore) -> None:
            viewer = await viewer_of(lore, whom)
            gives = await _read(lore, verb, options, arguments, values)
            there = await before(lore, gives) if before else None
            answer, call = await verb(lore, viewer, **gives), Call(gives, arguments, there, own, frame)
            if as_json:
                show.as_json(to_jsonable(in_json(answer, call) if in_json else answer))
            else:
                await shows(lore, answer, call)
            if after:
                await after(lore, answer, call)

        frame.run(work, creates=creates)

    parameters = [parameter for option in options for parameter in option.parameters()]
    parameters.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    parameters += [_parameter(name, kind, default) for name, (kind, default) in also.items()]
    parameters += [_parameter("viewer", ShownTo, None)] if for_viewer else []
    as_json = Annotated[bool, typer.Option("--json", help=helped(_JSON))]
    parameters += [] if "json" in without else [_parameter("as_json", as_json, False)]
    _become(run, verb, [_parameter("ctx", typer.Context), *parameters])
    return run


def add_others(app: typer.Typer, verbs: Iterable[Verb]) -> None:
    """Add the commands of the verbs that have none yet to a group: they print the answer as JSON."""
    there = {registered.name or getattr(registered.callback, "__name__", "") for registered in app.registered_commands}
    for verb in verbs:
        *group, name = verb.command.split() or [""]
        if group and name not in there:
            app.command(name)(command(verb, _as_json))


async def _as_json(_: Lore, answer: Any, call: Call) -> None:
    show.as_json(to_jsonable(answer))


def _become(run: Callable[..., None], verb: Verb, parameters: list[inspect.Parameter]) -> None:
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = helped(verb.help)


class _Option:
    """An argument of a verb on the command line, under its name there."""

    def __init__(
        self, argument: Argument, name: str, *, placed: bool, spread: bool, piped: bool, bounded: bool, left_out: bool
    ) -> None:
        self.piped, self.bounded, self.left_out = piped, bounded, left_out
        self.argument, self.name = argument, f"{name}_" if iskeyword(name) else name
        self.spread = spread or isinstance(argument.form, Words)
        self.placed = placed or argument.is_needed
        flag = f"--{name.replace('_', '-')}"
        can_be_switched_off = argument.clears and isinstance(argument.form, Number)
        self.off = f"no_{name}" if can_be_switched_off else ""
        self.flags = [flag, f"--no-{flag[2:]}"] if can_be_switched_off else [flag]

    @property
    def label(self) -> str:
        """The name of it in errors."""
        return self.name.strip("_").upper() if self.placed else self.flags[0]

    def read(self, value: Any) -> Any:
        """Return the value that was given; one text of several words, and what a file or standard input has."""
        if value is not None and isinstance(self.argument.form, Object):
            return json_object(text_in(value), f"{self.label} {value}")
        whole = " ".join(value) if self.spread and value else value
        return text_of(whole) if whole and self.piped else whole

    def parameters(self) -> list[inspect.Parameter]:
        """Return the parameters of the function: one, and a flag if a number can be taken away."""
        argument = self.argument
        kind, bounds = self._type()
        bounds = bounds if self.bounded else {}
        more = [*([_PIPED] if self.piped else []), *([_MAY_BE_CLEARED] if argument.clears and not self.off else [])]
        help_ = help_of(argument, *more)
        if self.placed:
            if self.left_out:
                place = typer.Argument(help=help_, metavar=self.label)
                return [_parameter(self.name, Annotated[kind | None, place], None)]
            place = typer.Argument(help=help_, metavar=self.label, **bounds)
            default = inspect.Parameter.empty if argument.is_needed else argument.default
            return [_parameter(self.name, Annotated[kind, place], default)]
        short = ["-n"] if self.name == "limit" else []
        option = typer.Option(self.flags[0], *short, help=help_, metavar=self._metavar(), **bounds)
        parameters = [_parameter(self.name, Annotated[kind, option], self._default())]
        if self.off:
            cleared = helped(Help(*(text.format(name=self.name) for text in _CLEARED)))
            parameters.append(_parameter(self.off, Annotated[bool, typer.Option(self.flags[1], help=cleared)], False))
        return parameters

    def _metavar(self) -> str | None:
        """Return a word for the values where the help lists them, or is not to list an older one, and the form of a
        message; None elsewhere."""
        if isinstance(self.argument.form, Many) and self.argument.form.of is Reference.SOURCE:
            return "ROOM/MESSAGE"
        words = getattr(self.argument.form, "words", ()) if isinstance(self.argument.form, Choice) else ()
        listed = bool(words) and all(word in self.argument.en for word in words)
        return self.name.upper() if listed or _OLDER in words else None

    def _type(self) -> tuple[Any, dict[str, Any]]:
        """Return the type of the parameter, and its bounds as Typer takes them."""
        if self.spread:
            return list[str], {}
        kind, bounds = self._plain_type()
        optional = self.argument.default is None or self.argument.default == ()
        return (kind | None if optional else kind), bounds

    def _plain_type(self) -> tuple[Any, dict[str, Any]]:
        match self.argument.form:
            case Number(low, high):
                return float, {"min": low, "max": high}
            case Whole(low, high):
                return int, {"min": low, "max": high}
            case Flag():
                return bool, {}
            case Page():
                return int, {"min": 1 if self.argument.form is Page.SIZE else 0}
            case Choice(words):
                return Literal[words], {}
            case Many(Choice(words)):
                return list[StrEnum("Word", {word: word for word in words})], {}  # type: ignore[misc]  # Typer takes no Literal
            case Many(Text() | Id() | Reference.SOURCE):
                return list[str], {}
            case Text() | Id() | Moment() | Time() | Object() | Reference():
                return str, {}
        raise TypeError(f"A command has no option for {self.argument.form!r}.")

    def _default(self) -> Any:
        if self.argument.default is NEEDED:
            return _USUAL
        return None if self.argument.default == () else self.argument.default


_MORE = (
    (Many, Help(" May be repeated.", "可重复。")),
    (Object, Help(" A file that has it; `-` is standard input.", "从文件读取；`-` 表示标准输入。")),
    (
        Time,
        Help(
            " Such as `2024-05-01T12:30Z`; without a zone it is in that of the setting `time_zone`.",
            "例如 `2024-05-01T12:30Z`；不写时区时按设置 `time_zone`。",
        ),
    ),
    (Moment, Help(" Such as `2024-05-01` or `'last week'`.", "例如 `2024-05-01`、`'last week'`、`上周五`。")),
)
_BEHIND = ("until", "end", "valid_until", "asked_at")
"""Times whose form is told of another one before."""
_BY_PART = (Reference.MEMORY, Reference.VERSION, Reference.EVOLUTION)


def help_of(argument: Argument, *more: Help) -> str:
    """Return the help of an argument, with what commands say of its form, and with `more`."""
    of_form = [text for forms, text in _MORE if isinstance(argument.form, forms) and argument.name not in _BEHIND]
    return helped(argument.help, *of_form, *([PART] if argument.form in _BY_PART else []), *more)


def _parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=default)


def _check(verb: Verb, options: list[_Option], values: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for options that exclude each other, and if none is given of those that the verb needs some
    of."""
    for option in options:
        if option.off and values[option.off] and values[option.name] is not None:
            raise InvalidInput("flags_exclude", flag=option.flags[0], other=option.flags[1])
    some = [alternative for alternative in options if alternative.argument.name in verb.some_of]
    if some and not any(
        values[alternative.name] not in (None, []) or values.get(alternative.off) for alternative in some
    ):
        flags = [flag for alternative in some for flag in alternative.flags]
        raise InvalidInput("option_missing", flags=", ".join(flags))


async def _read(
    lore: Lore, verb: Verb, options: list[_Option], arguments: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments that were given, with ids in place of names, and times in place of words. Raise
    `InvalidInput` in the words of the user."""
    given: dict[str, Any] = {}
    for option in options:
        name, value = option.argument.name, arguments[option.argument.name]
        if values.get(option.off):
            given[name] = None
        elif value not in (None, []):
            given[name] = await _value(lore, verb, option, value)
    _check_span(lore, verb, options, arguments, given)
    return given


async def _value(lore: Lore, verb: Verb, option: _Option, value: Any) -> Any:
    form = option.argument.form
    if isinstance(form, Moment):
        cleared = not value and option.argument.default is None and verb.scope == "write"
        return None if cleared else _moment(lore, verb, option, value, form.edge)
    if isinstance(form, Time):
        return _time(lore, option, value)
    if form in (Reference.SCOPE, Reference.GROUP):
        return await scope_for(lore, value, writes=verb.scope == "write", group=form is Reference.GROUP)
    if form is Reference.ROOM:
        return await lore.rooms.named(value, viewer=None)
    if form is Reference.NEW_ROOM:
        return await room_to_write(lore, value)
    if isinstance(form, Many) and form.of is Reference.SOURCE:
        return [await _source(lore, place) for place in value]
    if form in _BY_PART:
        memory_id = await lore.memories.named(value, "evolution" if form is Reference.EVOLUTION else "memory")
        newest = form is Reference.MEMORY and verb.scope == "write"
        return (await lore.memories.head(memory_id, viewer=None)).memory_id if newest else memory_id
    return value


async def _source(lore: Lore, place: str) -> Source:
    room, slash, message = place.rpartition("/")
    if not slash:
        raise InvalidInput("source_option_invalid", value=f"{place!r:.80}")
    here = await lore.rooms.named(room, viewer=None)
    return Source(here, await lore.messages.named(here, message))


def _moment(lore: Lore, verb: Verb, option: _Option, words: str, edge: Edge) -> datetime:
    """Return the time that words name. What is written may come, what is read was."""
    now, zone = lore.now(), lore.settings.search.zone
    return moment(option.label, words, now=now, zone=zone, edge=edge, may_come=verb.scope == "write")


def _time(lore: Lore, option: _Option, text: str) -> datetime:
    instant = parse_time(text, zone=lore.settings.search.zone)
    if instant is None:
        raise InvalidInput("time_option_invalid", name=option.label, value=repr(text))
    return instant


def _check_span(
    lore: Lore, verb: Verb, options: list[_Option], arguments: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Raise `InvalidInput` if something ends before it begins, or what is written ends as it begins."""
    span = [option for edge in verb.span or () for option in options if option.argument is edge]
    first, last = (given.get(option.argument.name) for option in span) if len(span) == 2 else (None, None)
    if first is None or last is None:
        return
    begin, end = span
    until, since = arguments[end.argument.name], arguments[begin.argument.name]
    if verb.scope == "write" and last <= first:
        raise InvalidInput(
            "span_empty", end=end.label, until=f"{until!r:.60}", start=begin.label, since=f"{since!r:.60}"
        )
    if is_before(_moment(lore, verb, end, until, "start"), last, first):
        labels = {"end": end.label, "start": begin.label}
        raise InvalidInput("option_span_reversed", **labels, until=f"{until!r:.60}", since=f"{since!r:.60}")
