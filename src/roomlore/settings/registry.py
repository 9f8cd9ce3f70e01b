"""The registered backends: those that ship, and those of other packages, which come first."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, cast

from roomlore import adapters
from roomlore.core.errors import InvalidInput, describe
from roomlore.ports.backends import BACKENDS, FACES, IMPORTERS, STRATEGIES, Backend, Kind, Section
from roomlore.ports.exports import Importers
from roomlore.services.contexts import strategies as contexts

T = TypeVar("T")


@cache
def registered() -> tuple[Backend[Any, Any], ...]:
    """Return every backend. Raise `InvalidInput` if one of another package cannot be used."""
    found = [_brought(point, Backend) for point in entry_points(group=BACKENDS)]
    known: dict[tuple[str, str], Backend[Any, Any]] = {}
    for backend in (*found, *map(_own, adapters.BACKENDS)):
        key = (backend.kind.name, backend.name)
        if backend.name in backend.kind.choices or key in known:
            raise InvalidInput("backend_twice", kind=backend.kind.name, name=repr(backend.name))
        known[key] = backend
    return tuple(known.values())


def backends_of(kind: Kind[T]) -> dict[str, Backend[T, Any]]:
    """Return the backends of a kind by name."""
    return {one.name: one for one in registered() if one.kind is kind}


def backend_sections() -> Mapping[str, type[Section]]:
    """Return the sections of settings that backends bring, by name."""
    classes = dict.fromkeys(one.settings for one in registered() if one.settings.section)
    found: dict[str, type[Section]] = {}
    for one in classes:
        if one.section in found:
            raise InvalidInput("backend_section_twice", section=repr(one.section))
        found[one.section] = one
    return found


@cache
def known_strategies() -> Mapping[str, contexts.Strategy]:
    """Return the context strategies by name, after those of other packages are registered."""
    for point in entry_points(group=STRATEGIES):
        if point.name in contexts.STRATEGIES:
            raise InvalidInput("strategy_twice", name=repr(point.name))
        contexts.STRATEGIES[point.name] = _brought(point, contexts.Strategy)
    return contexts.STRATEGIES


@cache
def importers() -> Importers:
    """Return what reads chat exports. Raise `InvalidInput` if no package brings it."""
    points = list(entry_points(group=IMPORTERS))
    if not points:
        raise InvalidInput("importers_not_installed")
    if len(points) > 1:
        raise InvalidInput("importers_twice")
    return cast(Importers, _loaded(points[0]))


def face(name: str) -> Any:
    """Return the module that serves over this protocol. Raise `ModuleNotFoundError` that names what is missing."""
    for point in entry_points(group=FACES, name=name):
        return point.load()
    raise ModuleNotFoundError("The package roomlore-server is not installed.", name="roomlore-server")


def names_of(kind: Kind[Any]) -> Iterator[str]:
    """Yield the values of the setting that names a backend of this kind."""
    yield from kind.choices
    yield from backends_of(kind)


def _own(line: str) -> Backend[Any, Any]:
    module, _, name = line.partition(":")
    backend = getattr(import_module(module), name)
    assert isinstance(backend, Backend)
    return backend


def _brought(point: EntryPoint, wanted: type[T]) -> T:
    found = _loaded(point)
    if not isinstance(found, wanted):
        what = f"{_package_of(point)} brings {point.value!r}, which is no {wanted.__name__}"
        raise InvalidInput("plugin_broken", what=what)
    return found


def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        what = f"{_package_of(point)} brings {point.value!r}, which cannot be loaded: {describe(error)}"
        raise InvalidInput("plugin_broken", what=what) from error


def _package_of(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "a package"
