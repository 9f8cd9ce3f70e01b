"""The page docs/reference/python.md: every public name, and every verb of every service."""

import asyncio
import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, get_args, get_type_hints, is_typeddict

import roomlore
from docsite.marked import escaped, table
from docsite.signatures import kind, signature, value

_BESIDE: Mapping[str, str] = {
    "roomlore_server.http": "[HTTP](http.md): the service inside your own ASGI server.",
    "roomlore_integrations.openai_agents": "[How to use it](../how-to/openai-agents.md).",
    "roomlore_integrations.langchain": "[How to use it](../how-to/langchain.md).",
    "roomlore_integrations.langgraph": "[How to use it](../how-to/langgraph.md#the-store).",
    "roomlore_integrations.mem0": "[How to use it](../how-to/moving-from-mem0.md).",
    "roomlore_testkit": "Doubles and builders for the tests of your own program.",
}


def regions() -> Mapping[str, str]:
    """Return what the code says, by the name of its region."""
    return {"python": _page()}


def _page() -> str:
    public = {name: getattr(roomlore, name) for name in roomlore.__all__}
    calls = {name: one for name, one in public.items() if inspect.isfunction(one)}
    faces = {name: public[name] for name in ("Lore", "SyncLore")}
    found = services()
    values = {name: one for name, one in public.items() if name not in {*calls, *faces}}
    others = _others([*values.values(), *(verb for one in found.values() for verb in verbs(type(one)).values())])
    parts = [
        "\n## Opening\n",
        *(_call(name, one, "roomlore.") for name, one in calls.items()),
        *(_class_with_verbs(name, one) for name, one in faces.items()),
        *(_service(name, one) for name, one in found.items()),
        "\n## Values and errors\n",
        *(_value(name, one) for name, one in values.items()),
        "\n## Other values\n\nWhat verbs answer with beside those. They are imported from where it says.\n",
        *(_value(name, one, where=True) for name, one in others.items()),
        "\n## Beside the package\n",
        *(_module(name, about) for name, about in _BESIDE.items()),
    ]
    return "".join(parts)


def services() -> dict[str, object]:
    """Return every service of an open roomlore by its name."""
    return asyncio.run(_opened_services())


async def _opened_services() -> dict[str, object]:
    async with roomlore.open("sqlite://", background=False) as lore:
        made = (
            name for name, one in vars(roomlore.Lore).items() if isinstance(one, cached_property) and name[0] != "_"
        )
        return {name: getattr(lore, name) for name in made}


def verbs(owner: type) -> dict[str, Callable[..., Any]]:
    """Return the public methods, in the order of their definition."""
    if not owner.__module__.startswith("roomlore"):
        return {}
    found = [(name, one) for part in reversed(owner.__mro__[:-1]) for name, one in vars(part).items()]
    return {name: getattr(owner, name) for name, one in found if name[0] != "_" and inspect.isfunction(one)}


def _service(name: str, service: object) -> str:
    head = f"\n## `lore.{name}`\n{_told(type(service))}"
    return head + "".join(_call(verb, one, f"lore.{name}.") for verb, one in verbs(type(service)).items())


def _class_with_verbs(name: str, owner: type) -> str:
    head = f"\n## {name}\n{_told(owner)}{_properties(owner)}"
    return head + "".join(_call(verb, one, f"{name}.") for verb, one in verbs(owner).items())


def _call(name: str, one: Callable[..., Any], under: str) -> str:
    told = _told(one) or f"\nAs `Lore.{name}`.\n"
    return f"\n### `{under}{name}`\n\n```text\n{signature(inspect.unwrap(one), name)}\n```\n{told}"


def _value(name: str, one: Any, *, where: bool = False) -> str:
    place = f"\n`from {one.__module__} import {name}`\n" if where else ""
    return f"\n### {name}\n{place}{_base(one)}{_told(one) if inspect.isclass(one) else ''}{_content(one)}"


def _base(one: Any) -> str:
    """Return the base class of an error."""
    if not (inspect.isclass(one) and issubclass(one, roomlore.RoomloreError)) or one is roomlore.RoomloreError:
        return ""
    above = one.__mro__[1].__name__
    return f"\nA [{above}](#{above.lower()}).\n"


def _content(one: Any) -> str:
    if isinstance(one, enum.EnumMeta):
        members: Mapping[str, Any] = one.__members__
        return "\n" + ", ".join(f"`{name}` is `{member.value}`" for name, member in members.items()) + ".\n"
    if dataclasses.is_dataclass(one):
        return _fields(one) + _properties(one)
    if is_typeddict(one):
        told = [(f"`{name}`", f"`{kind(hint)}`") for name, hint in get_type_hints(one).items()]
        return table("key", "type", rows=told).rstrip("\n") + "\n"
    if inspect.isclass(one) and issubclass(one, roomlore.Settings):
        return "\n[Every setting](settings.md#all-settings) is a field.\n"
    return "" if inspect.isclass(one) else f"\n```text\n{kind(one)}\n```\n"


def _fields(owner: Any) -> str:
    shown = [field for field in dataclasses.fields(owner) if field.name[0] != "_"]
    told = [(f"`{field.name}`", f"`{kind(field.type)}`", _default(field)) for field in shown]
    return table("field", "type", "default", rows=told).rstrip("\n") + "\n" if told else ""


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{value(field.default)}`"
    return "" if field.default_factory is dataclasses.MISSING else f"`{value(field.default_factory())}`"


def _properties(owner: Any) -> str:
    found = {name: one for name, one in vars(owner).items() if isinstance(one, property) and name[0] != "_"}
    told = [f"- `{name}`: {escaped(inspect.getdoc(one) or '')}" for name, one in found.items()]
    return "\n" + "\n".join(line.rstrip(": ") for line in told) + "\n" if told else ""


def _told(one: Any) -> str:
    """Return the docstring; '' for the one that Python generates for a dataclass or an enumeration."""
    own = inspect.getdoc(one) if one.__doc__ and not one.__doc__.startswith(f"{one.__name__}(") else ""
    blocks = (own or "").split("\n\n") if own != enum.Enum.__doc__ else []
    return "".join(f"\n{one if one.startswith(' ') else escaped(one)}\n" for one in blocks if one)


def _others(shown: list[Any]) -> dict[str, Any]:
    """Return the types of roomlore that are not public names but occur in signatures, and those that occur in these."""
    found: dict[str, Any] = {}
    waiting = [part for one in shown for part in _spoken(one)]
    while waiting:
        one = waiting.pop()
        if one.__name__ not in {*found, *roomlore.__all__}:
            found[one.__name__] = one
            waiting += _spoken(one)
    return dict(sorted(found.items()))


def _spoken(one: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(one):
        annotations = [field.type for field in dataclasses.fields(one)]
    elif inspect.isfunction(one):
        found = inspect.signature(inspect.unwrap(one))
        annotations = [found.return_annotation, *(part.annotation for part in found.parameters.values())]
    else:
        return
    for annotation in annotations:
        yield from filter(_is_value, _parts(annotation))


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _is_value(one: Any) -> bool:
    own = inspect.isclass(one) and one.__module__.startswith("roomlore")
    return own and (dataclasses.is_dataclass(one) or isinstance(one, enum.EnumMeta))


def _module(place: str, about: str) -> str:
    module = importlib.import_module(place)
    head = f"\n### `{place}`\n\n{about}\n"
    return head + "".join(_beside(name, getattr(module, name)) for name in module.__all__)


def _beside(name: str, one: Any) -> str:
    if not callable(one):
        return f"\n- `{name}`: `{value(one)}`\n"
    own = re.split(r"\n\n", inspect.getdoc(one) or "")[0]
    raised = inspect.isclass(one) and issubclass(one, Exception)
    return f"\n```text\n{name if raised else signature(one, name)}\n```\n\n{escaped(own)}\n"
