"""Prompts stored in Langfuse. The package `httpx` is loaded when they are opened."""

from collections.abc import Collection, Sequence
from importlib.util import find_spec
from typing import ClassVar

from pydantic import model_validator

from roomlore.core.errors import InvalidInput, Unavailable
from roomlore.core.health import Finding, say
from roomlore.core.prompt import KEPT_ELSEWHERE
from roomlore.ports.backends import PROMPTS, Backend, Extra, Host, PromptServer, Section, WebAddress, setting
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import Prompts

_TIMEOUT_SECONDS = 2.0
_LABEL = "production"
"""Langfuse's own label for the version of a prompt that is in use."""


def open_langfuse(
    host: str,
    *,
    public_key: str,
    secret_key: str,
    names: Collection[str],
    packaged: Prompts,
    clock: Clock,
    telemetry: Telemetry,
    label: str = _LABEL,
    cache_seconds: float = 60.0,
    timeout_seconds: float = _TIMEOUT_SECONDS,
) -> PromptServer:
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


class LangfuseSettings(Section):
    """Prompts in a Langfuse."""

    section: ClassVar[str] = "langfuse"
    langfuse_host: WebAddress = setting(
        "", "A Langfuse to take the prompts of evolutions from.", form="an http or https URL"
    )
    langfuse_public_key: str = setting("", "The public key of its project.", form="a secret", hidden="secret")
    langfuse_secret_key: str = setting("", "The secret key of its project.", form="a secret", hidden="secret")

    @model_validator(mode="after")
    def _has_keys(self) -> "LangfuseSettings":
        if self.langfuse_host and not (self.langfuse_public_key and self.langfuse_secret_key):
            raise ValueError("langfuse_host is set; set langfuse_public_key and langfuse_secret_key too.")
        return self


def _open(settings: LangfuseSettings, host: Host) -> PromptServer:
    assert host.packaged is not None
    assert host.telemetry is not None
    return open_langfuse(
        settings.langfuse_host,
        public_key=settings.langfuse_public_key,
        secret_key=settings.langfuse_secret_key,
        names=KEPT_ELSEWHERE,
        packaged=host.packaged,
        clock=host.clock,
        telemetry=host.telemetry,
    )


def _lacks(settings: LangfuseSettings) -> str:
    return "" if settings.langfuse_host else "langfuse_host is not set; give the server's address."


async def _probe(settings: LangfuseSettings, _: Host, __: float) -> Sequence[Finding]:
    name = KEPT_ELSEWHERE[0]
    there = await ask_langfuse(
        settings.langfuse_host,
        public_key=settings.langfuse_public_key,
        secret_key=settings.langfuse_secret_key,
        name=name,
        label=_LABEL,
        timeout_seconds=_TIMEOUT_SECONDS,
    )
    return [Finding("langfuse", "ok", say("prompts.answer" if there else "prompts.without", name=name))]


LANGFUSE = Backend(
    kind=PROMPTS,
    name="langfuse",
    open=_open,
    settings=LangfuseSettings,
    lacks=_lacks,
    probe=_probe,
    extra=Extra("langfuse", "httpx", shared=True),
)
