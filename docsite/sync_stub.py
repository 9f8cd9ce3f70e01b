"""`roomlore/sync.pyi`: the types of the synchronous client, made from the async one."""

import builtins
import enum
import inspect
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import roomlore
from docsite.python_page import services, verbs
from docsite.signatures import value
from roomlore.wiring import sync

STUB = Path(roomlore.__file__).with_name("sync.pyi")
_ABOUT = '"""Made from the async client by `make reference`; a test compares the two."""\n# ruff: noqa: A002'
_ALWAYS = {"contextmanager": "contextlib", "type_check_only": "typing", "TypeVar": "typing"}


def stub() -> str:
    """Return the file as it should be."""
    types, made = _Types(), services()
    fields = [f"    {name}: {_name_of(one)}\n" for name, one in made.items()]
    parts = [
        *(f"@type_check_only\nclass {_name_of(one)}:\n{types.methods(type(one))}" for one in made.values()),
        f"class SyncLore:\n    tenant: str\n{''.join(fields)}{types.methods(sync.SyncLore)}",
        types.function(sync.connect_sync),
        f"@contextmanager\n{types.function(inspect.unwrap(sync.open_sync))}",
    ]
    return _formatted("\n".join([_ABOUT, *types.heads(), *parts]))


def _name_of(service: object) -> str:
    return f"Sync{type(service).__name__}"


class _Types:
    """Writes signatures and types, and keeps what the file must import for them."""

    def __init__(self) -> None:
        self._homes = dict(_ALWAYS)
        self._variables: set[str] = set()

    def heads(self) -> Iterator[str]:
        """Return the imports and the type variables of all that was written."""
        yield "import builtins"
        yield from (f"from {home} import {name}" for name, home in self._homes.items())
        yield from (f'{name} = TypeVar("{name}")' for name in sorted(self._variables))

    def methods(self, owner: type) -> str:
        """Return the properties and the public methods. A method `list` would hide the type of that name."""
        properties = [one.fget for one in vars(owner).values() if isinstance(one, property) and one.fget]
        methods = verbs(owner)
        text = "".join(f"    @property\n    {self.function(one)}" for one in properties)
        text += "".join(f"    {self.function(one)}" for one in methods.values())
        for name in set(methods) & set(dir(builtins)):
            text = re.sub(rf"\b{name}\[", f"builtins.{name}[", text)
        return text

    def function(self, call: Callable[..., Any]) -> str:
        hints = get_type_hints(call)
        parts = list(self._parameters(inspect.signature(call), hints))
        return f"def {call.__name__}({', '.join(parts)}) -> {self._returned(hints['return'])}: ...\n"

    def _parameters(self, found: inspect.Signature, hints: dict[str, Any]) -> Iterator[str]:
        named = False
        for one in found.parameters.values():
            if one.kind in (one.VAR_POSITIONAL, one.POSITIONAL_ONLY):
                raise TypeError(f"The parameter {one} is of a kind that {__name__} cannot write yet.")
            if one.kind is not one.POSITIONAL_OR_KEYWORD and not named:
                named = True
                yield "*"
            if one.kind is one.VAR_KEYWORD:
                yield from self._options(get_args(hints[one.name])[0])
                continue
            kind = f": {self._written(hints[one.name])}" if one.name in hints else ""
            yield f"{one.name}{kind}{_default(one.default)}"

    def _options(self, options: Any) -> Iterator[str]:
        """Return the keys of `**options: Unpack[...]` as parameters, so that the tools of a reply may be plain too."""
        for name, hint in get_type_hints(options).items():
            yield f"{name}: {self._written(hint)}{'' if name in options.__required_keys__ else ' = ...'}"

    def _returned(self, kind: Any) -> str:
        """Return the type of the answer, which does not have to be awaited."""
        arguments = [self._written(one) for one in get_args(kind)]
        if get_origin(kind) is AsyncIterator:
            return f"{self._named(Iterator)}[{arguments[0]}]"
        if get_origin(kind) is AsyncGenerator:
            self._homes["Generator"] = "collections.abc"
            return f"Generator[{', '.join(arguments)}, None]"
        return self._written(kind)

    def _written(self, kind: Any) -> str:
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is None:
            return self._named(kind)
        if origin in (Union, UnionType):
            return " | ".join(map(self._written, arguments))
        if origin is Literal:
            return f"{self._named(origin)}[{', '.join(map(repr, arguments))}]"
        if origin is Callable:
            taken = ", ".join(map(self._written, arguments[0]))
            return f"{self._named(origin)}[[{taken}], {self._answered(arguments[1])}]"
        return f"{self._named(origin)}[{', '.join(map(self._written, arguments))}]"

    def _answered(self, kind: Any) -> str:
        """Return the type of what the caller's own function gives: where one is awaited, a plain one does as well."""
        plain = f"{self._written(get_args(kind)[0])} | " if get_origin(kind) is Awaitable else ""
        return plain + self._written(kind)

    def _named(self, kind: Any) -> str:
        """Return the name of a type, which is imported from the module that defines it."""
        if kind in (None, NoneType, Ellipsis):
            return "..." if kind is Ellipsis else "None"
        name: str = kind.__name__
        home = kind.__module__.partition("._")[0]
        if isinstance(kind, TypeVar):
            self._variables.add(name)
        elif home not in ("builtins", sync.__name__) and self._homes.setdefault(name, home) != home:
            raise ValueError(f"{home} and {self._homes[name]} both define {name}; give one of them another name.")
        return name


def _default(given: Any) -> str:
    if given is inspect.Parameter.empty:
        return ""
    shown = given is None or isinstance(given, bool | int | float | str | enum.Enum)
    return f" = {value(given) if shown else '...'}"


def _formatted(text: str) -> str:
    for command in (["check", "--quiet", "--fix", "--select", "I,F401,UP"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return text
