"""Prompts stored in Langfuse. The package `httpx` is loaded when they are opened."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from pydantic import model_validator

from roomlore.core.errors import InvalidInput, Unavailable
from roomlore.core.health import Finding, say
from roomlore.core.prompt import KEPT_ELSEWHERE
from roomlore.ports.backends import PROMPTS, Backend, Extra, Host, PromptServer, Section, WebAddress, setting

if TYPE_CHECKING:
    from roomlore.adapters.langfuse.prompts import LangfuseServer

_TIMEOUT_SECONDS = 2.0
_LABEL = "production"
"""Langfuse's own label for the version of a prompt that is in use."""
_CACHE_SECONDS = 60.0
"""Time a prompt is used before it is asked for again: as Langfuse's own client."""


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


def _server(settings: LangfuseSettings) -> "LangfuseServer":
    """Return the server. No request is sent yet. Raise `InvalidInput` for an invalid host or key, and if the extra is
    not installed."""
    if find_spec("httpx") is None:
        raise InvalidInput("langfuse_not_installed")
    from roomlore.adapters.langfuse.prompts import LangfuseServer

    return LangfuseServer(
        settings.langfuse_host,
        public_key=settings.langfuse_public_key,
        secret_key=settings.langfuse_secret_key,
        label=_LABEL,
        timeout_seconds=_TIMEOUT_SECONDS,
    )


def _open(settings: LangfuseSettings, host: Host) -> PromptServer:
    """Return the prompts of `KEPT_ELSEWHERE` from the server; all others are those that ship."""
    assert host.packaged is not None
    assert host.telemetry is not None
    server = _server(settings)
    from roomlore.adapters.langfuse.prompts import LangfusePrompts

    return LangfusePrompts(
        server,
        names=KEPT_ELSEWHERE,
        packaged=host.packaged,
        clock=host.clock,
        telemetry=host.telemetry,
        cache_seconds=_CACHE_SECONDS,
    )


async def _probe(settings: LangfuseSettings, _: Host, __: float) -> Sequence[Finding]:
    name, server = KEPT_ELSEWHERE[0], _server(settings)
    from roomlore.adapters.langfuse.prompts import Unreachable, Unusable

    try:
        there = await server.find(name) is not None
    except (Unreachable, Unusable) as error:
        raise Unavailable("langfuse_failed", error=error) from error
    finally:
        await server.close()
    return [Finding("langfuse", "ok", say("prompts.answer" if there else "prompts.without", name=name))]


LANGFUSE = Backend(
    kind=PROMPTS,
    name="langfuse",
    open=_open,
    settings=LangfuseSettings,
    lacks=lambda settings: "" if settings.langfuse_host else "langfuse_host is not set; give the server's address.",
    probe=_probe,
    extra=Extra("langfuse", "httpx", shared=True),
)
