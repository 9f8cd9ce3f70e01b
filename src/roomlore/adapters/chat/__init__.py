"""Clients of language models. The package that they need is loaded at the first request."""

from importlib.util import find_spec

from roomlore.adapters.chat.client import OpenAIChat
from roomlore.core.chat import Provider
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.ports.backends import CHAT, ChatBackend, Extra, NoSettings
from roomlore.ports.coordination import Clock
from roomlore.ports.language import ChatClient


def open_chat(*, clock: Clock) -> ChatClient:
    """Return a client of servers that speak OpenAI's protocol (`POST {base_url}/chat/completions`). No request is sent
    yet.

    `clock`: the time that a `Retry-After` with a date is compared with. Raises `InvalidInput` if the extra is not
    installed.
    """
    if not can_chat():
        raise InvalidInput("openai_not_installed")
    return OpenAIChat(clock=clock)


def can_chat() -> bool:
    """Return True if the extra is installed."""
    return find_spec("openai") is not None


async def reach_provider(provider: Provider, key: str | None, timeout_seconds: float) -> None:
    """Send `GET {base_url}/models`. Any status but 401 and 403 shows that the provider can be used. No model is called,
    so it costs nothing. Redirects are not followed, so that the key is not sent elsewhere. Raise `ModelUnavailable`,
    and `InvalidInput` if the extra is not installed."""
    if not can_chat():
        raise InvalidInput("openai_not_installed")
    import httpx2  # comes with the extra

    from roomlore.adapters.tls import trusted

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with (
            httpx2.AsyncClient(timeout=timeout_seconds, verify=trusted()) as client,
            client.stream("GET", f"{provider.base_url.rstrip('/')}/models", headers=headers) as answer,
        ):
            status = answer.status_code
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise ModelUnavailable(
            "model_server_unreachable",
            kind=type(error).__name__,
            cause="unreachable",
        ) from error
    if status in (401, 403):
        raise ModelUnavailable(
            "model_key_refused",
            status=status,
            variable=provider.key_variable or "whether it needs a key",
            cause="refused",
        )


OPENAI = ChatBackend(
    kind=CHAT,
    name="openai",
    open=lambda _, host: open_chat(clock=host.clock),
    settings=NoSettings,
    lacks=lambda _: "" if can_chat() else "it needs the extra: pip install 'roomlore[openai]'.",
    reach=reach_provider,
    extra=Extra("openai", "openai"),
)
