"""Prompts stored in Langfuse. The package `httpx` is loaded when they are opened."""

from collections.abc import Collection
from importlib.util import find_spec
from typing import Protocol

from roomlore.core.errors import InvalidInput, Unavailable
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import Prompts


class OpenPrompts(Prompts, Protocol):
    """Prompts from a server."""

    async def close(self) -> None: ...


def open_langfuse(
    host: str,
    *,
    public_key: str,
    secret_key: str,
    names: Collection[str],
    packaged: Prompts,
    clock: Clock,
    telemetry: Telemetry,
    label: str = "production",
    cache_seconds: float = 60.0,
    timeout_seconds: float = 2.0,
) -> OpenPrompts:
    """Return the prompts with these names from the Langfuse at `host`, under `label`; all others are `packaged`.

    No request is sent yet. Raises `InvalidInput` for an invalid host or key, and if the extra is not installed.
    """
    if find_spec("httpx") is None:
        raise InvalidInput("Langfuse needs the extra: pip install 'roomlore[langfuse]'.")
    from roomlore.adapters.langfuse.prompts import LangfusePrompts, LangfuseServer

    server = LangfuseServer(
        host, public_key=public_key, secret_key=secret_key, label=label, timeout_seconds=timeout_seconds
    )
    return LangfusePrompts(
        server, names=names, packaged=packaged, clock=clock, telemetry=telemetry, cache_seconds=cache_seconds
    )


async def ask_langfuse(
    host: str, *, public_key: str, secret_key: str, name: str, label: str, timeout_seconds: float
) -> bool:
    """Return True if the Langfuse at `host` has the prompt under the label. Raises `Unavailable` if it does not answer
    with a prompt, and `InvalidInput` as `open_langfuse` does."""
    if find_spec("httpx") is None:
        raise InvalidInput("Langfuse needs the extra: pip install 'roomlore[langfuse]'.")
    from roomlore.adapters.langfuse.prompts import LangfuseServer, Unreachable, Unusable

    server = LangfuseServer(
        host, public_key=public_key, secret_key=secret_key, label=label, timeout_seconds=timeout_seconds
    )
    try:
        return await server.find(name) is not None
    except (Unreachable, Unusable) as error:
        raise Unavailable(f"Langfuse: {error}.") from error
    finally:
        await server.close()
