"""What a Langfuse is asked: one prompt by its name, and nothing is ever told to it."""

import asyncio
import json
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from roomlore.core.errors import InvalidInput, describe
from roomlore.core.prompt import Prompt

_MOST_BYTES = 1_048_576
_ADVICE = {
    401: "check langfuse_public_key and langfuse_secret_key",
    403: "check what the keys may do",
    429: "its limit is reached",
}


class Unreachable(Exception):
    """The server does not answer, or not now."""


class Unusable(Exception):
    """The server answers with something that is no prompt for roomlore."""


class LangfuseServer:
    """`timeout_seconds`: for a whole answer, connecting included."""

    def __init__(self, host: str, *, public_key: str, secret_key: str, label: str, timeout_seconds: float) -> None:
        parts = urlsplit(host)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise InvalidInput(
                "langfuse_host must be an http or https URL without user, password or query, such as "
                "https://langfuse.example.com."
            )
        for name, key in (("langfuse_public_key", public_key), ("langfuse_secret_key", secret_key)):
            if not key or not (key.isascii() and key.isprintable()):
                raise InvalidInput(f"{name} must be of ASCII characters without line breaks, and not empty.")
        self._label = label
        self._seconds = timeout_seconds
        self._client = httpx.AsyncClient(
            base_url=host.rstrip("/"), auth=httpx.BasicAuth(public_key, secret_key), timeout=timeout_seconds
        )

    async def find(self, name: str) -> Prompt | None:
        """The prompt as it is now; None where there is none under the label. Raises `Unreachable`, `Unusable`."""
        try:
            async with asyncio.timeout(self._seconds):
                status, body = await self._get(name)
        except (TimeoutError, httpx.HTTPError) as error:
            raise Unreachable(f"the server does not answer: {describe(error)}") from error
        if status == 404:
            return None
        if status == 429 or status >= 500:
            raise Unreachable(f"the server answers with status {status}")
        if status != 200:
            raise Unusable(f"the server answers with status {status}: {_ADVICE.get(status, 'check langfuse_host')}")
        return _prompt(name, body)

    async def close(self) -> None:
        await self._client.aclose()

    async def _get(self, name: str) -> tuple[int, bytes]:
        path = f"/api/public/v2/prompts/{quote(name, safe='')}"
        async with self._client.stream("GET", path, params={"label": self._label}) as answer:
            body = bytearray()
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise Unusable(f"the answer is longer than {_MOST_BYTES} bytes")
            return answer.status_code, bytes(body)


def _prompt(name: str, body: bytes) -> Prompt:
    try:
        told: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unusable("the answer is no JSON: check langfuse_host") from error
    if not isinstance(told, dict) or not isinstance(told.get("prompt"), str):
        kind = told.get("type") if isinstance(told, dict) else None
        raise Unusable("it is a chat prompt; make it a text prompt" if kind == "chat" else "the answer has no prompt")
    return Prompt(name, told["prompt"], version=str(told.get("version", ""))[:64])
