"""Prompts of a Langfuse server, requested by name and cached. No data is sent to it."""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from roomlore.core.errors import InvalidInput, describe
from roomlore.core.prompt import Prompt
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import Language, Prompts

log = logging.getLogger(__name__)

_MAX_BYTES = 1_048_576
_ADVICE = {
    401: "check langfuse_public_key and langfuse_secret_key",
    403: "check what the keys may do",
    429: "its limit is reached",
}


class Unreachable(Exception):
    """The server does not answer, or not now."""


class Unusable(Exception):
    """The server's answer is not a usable prompt."""


class LangfuseServer:
    """A Langfuse server. `timeout_seconds`: for a whole answer, connecting included."""

    def __init__(self, host: str, *, public_key: str, secret_key: str, label: str, timeout_seconds: float) -> None:
        parts = urlsplit(host)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise InvalidInput("langfuse_host_invalid")
        for name, key in (("langfuse_public_key", public_key), ("langfuse_secret_key", secret_key)):
            if not key or not (key.isascii() and key.isprintable()):
                raise InvalidInput("langfuse_key_invalid", name=name)
        self._label = label
        self._seconds = timeout_seconds
        self._client = httpx.AsyncClient(
            base_url=host.rstrip("/"), auth=httpx.BasicAuth(public_key, secret_key), timeout=timeout_seconds
        )

    async def find(self, name: str) -> Prompt | None:
        """Return the current prompt; None if there is none under the label. Raises `Unreachable` and `Unusable`."""
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
                if len(body) > _MAX_BYTES:
                    raise Unusable(f"the answer is longer than {_MAX_BYTES} bytes")
            return answer.status_code, bytes(body)


def _prompt(name: str, body: bytes) -> Prompt:
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unusable("the answer is no JSON: check langfuse_host") from error
    if not isinstance(answer, dict) or not isinstance(answer.get("prompt"), str):
        kind = answer.get("type") if isinstance(answer, dict) else None
        raise Unusable("it is a chat prompt; make it a text prompt" if kind == "chat" else "the answer has no prompt")
    return Prompt(name, answer["prompt"], version=str(answer.get("version", ""))[:64])


_Key = tuple[str, Language]


@dataclass(frozen=True, slots=True)
class _Kept:
    prompt: Prompt
    until: float


class LangfusePrompts:
    """The port `Prompts`. Requests a prompt at most once in `cache_seconds`, also if that fails.

    In the language `zh` it requests the prompt `memory_evolve-zh`, and `memory_evolve` if there is none. What a
    prompt has no placeholder for is added at its end, as the packaged one shows it; an unknown placeholder makes it
    unusable. While the server does not answer, the last good
    prompt of this process is used; otherwise, and if there is none, the packaged one.
    """

    def __init__(
        self,
        server: LangfuseServer,
        *,
        names: Collection[str],
        packaged: Prompts,
        clock: Clock,
        telemetry: Telemetry,
        cache_seconds: float,
    ) -> None:
        self._server = server
        self._names = frozenset(names)
        self._packaged = packaged
        self._clock = clock
        self._telemetry = telemetry
        self._seconds = cache_seconds
        self._kept: dict[_Key, _Kept] = {}
        self._asking: defaultdict[_Key, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def find(self, name: str, *, language: Language) -> Prompt:
        shipped = await self._packaged.find(name, language=language)
        if name not in self._names:
            return shipped
        key = (name, language)
        async with self._asking[key]:
            kept = self._kept.get(key)
            if kept is None or self._clock.monotonic() >= kept.until:
                server_prompt = await self._ask(shipped, language, kept)
                kept = self._kept[key] = _Kept(server_prompt, self._clock.monotonic() + self._seconds)
        return kept.prompt

    async def close(self) -> None:
        await self._server.close()

    async def _ask(self, shipped: Prompt, language: Language, before: _Kept | None) -> Prompt:
        name = shipped.name
        try:
            prompt = await self._server.find(f"{name}-{language}") or await self._server.find(name)
            if prompt is None:
                raise Unusable("there is none of that name under the label")
            _check_places(prompt, shipped)
        except Unreachable as error:
            return self._do_without(name, "unreachable", error, before.prompt if before else shipped)
        except Unusable as error:
            return self._do_without(name, "unusable", error, shipped)
        self._count("found")
        return replace(prompt.with_places_of(shipped), name=name)

    def _do_without(self, name: str, result: str, why: Exception, instead: Prompt) -> Prompt:
        self._count(result)
        log.warning("a prompt is not taken from Langfuse", extra={"prompt": name, "why": str(why)})
        return instead

    def _count(self, result: str) -> None:
        self._telemetry.count("roomlore_langfuse_prompts_total", labels={"result": result})


def _check_places(prompt: Prompt, shipped: Prompt) -> None:
    """Check that nothing fills no placeholder: it would fail every evolution."""
    if strange := prompt.places - shipped.places:
        raise Unusable(f"it asks for {_shown(strange)}, which nothing gives it")


def _shown(places: Collection[str]) -> str:
    return ", ".join("{{" + place + "}}" for place in sorted(places))
