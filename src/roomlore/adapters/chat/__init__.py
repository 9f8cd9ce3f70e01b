"""Chats with language models. The package they need is loaded when a model is first asked, and not before."""

from importlib.util import find_spec

from roomlore.adapters.chat.client import OpenAIChat
from roomlore.core.chat.registry import Provider
from roomlore.core.errors import InvalidInput
from roomlore.ports.chat import ChatClient
from roomlore.ports.coordination import Clock


def open_chat(*, clock: Clock) -> ChatClient:
    """Servers that speak OpenAI's protocol (`POST {base_url}/chat/completions`). Nothing is asked of any yet.

    `clock`: what a `Retry-After` that is a date is read by. Raises `InvalidInput` where the extra is not installed.
    """
    if not can_chat():
        raise InvalidInput("Models need the extra: pip install 'roomlore[openai]'.")
    return OpenAIChat(clock=clock)


def can_chat() -> bool:
    """Whether the extra is installed."""
    return find_spec("openai") is not None


async def reach_provider(provider: Provider, *, key: str | None, timeout_seconds: float) -> None:
    """Returns when the provider answers and does not refuse the key; no model is asked, so it costs nothing. Raises
    `ModelUnavailable`, and `InvalidInput` where the extra is not installed."""
    if not can_chat():
        raise InvalidInput("Models need the extra: pip install 'roomlore[openai]'.")
    from roomlore.adapters.chat.reaching import reach

    await reach(provider, key=key, timeout_seconds=timeout_seconds)
