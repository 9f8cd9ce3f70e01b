"""Choosing and opening the backends that the settings name."""

from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar

from roomlore.ports.backends import Backend, Host, Kind
from roomlore.settings import Settings


class Closable(Protocol):
    async def close(self) -> None: ...


T = TypeVar("T")
C = TypeVar("C", bound=Closable)


async def usable(kind: Kind[T], settings: Settings, host: Host) -> list[Backend[T, Any]]:
    """Return the backends that can be used here, the best first. Raise the reason if the settings name one that cannot
    be."""
    named = settings.named(kind) not in ("auto", "off")
    found = []
    for backend in settings.candidates(kind):
        refusal = await backend.refuses(settings.of(backend), host)
        if refusal is None:
            found.append(backend)
        elif named:
            raise refusal
    return found


def opened(backend: Backend[T, Any], settings: Settings, host: Host) -> T:
    """Return the backend, opened with its settings."""
    return backend.open(settings.of(backend), host)


def open_configured(kind: Kind[C], settings: Settings, host: Host, closing: AsyncExitStack) -> C | None:
    """Open the first backend whose settings are complete, and close it with `closing`; None if there is none."""
    candidates = settings.candidates(kind)
    if not candidates:
        return None
    backend = opened(candidates[0], settings, host)
    closing.push_async_callback(backend.close)
    return backend
