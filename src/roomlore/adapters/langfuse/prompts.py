"""The port `Prompts` over a Langfuse, with the prompts that ship behind it."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace

from roomlore.adapters.langfuse.server import LangfuseServer, Unreachable, Unusable
from roomlore.core.prompt import Prompt
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import Language, Prompts

_Key = tuple[str, Language]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Kept:
    prompt: Prompt
    until: float


class LangfusePrompts:
    """Asks for a prompt at most once in `cache_seconds`, whether or not it can be had.

    In the language `zh` the prompt `memory_evolve-zh` is asked for, and where there is none `memory_evolve`. A prompt
    that does not fill in what the one that ships fills in, or asks for more, is not used. While the server does not
    answer, the last good prompt of this process is used; in every other case, and where there is none, the one that
    ships.
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
                found = await self._ask(shipped, language, kept)
                kept = self._kept[key] = _Kept(found, self._clock.monotonic() + self._seconds)
        return kept.prompt

    async def close(self) -> None:
        await self._server.close()

    async def _ask(self, shipped: Prompt, language: Language, before: _Kept | None) -> Prompt:
        name = shipped.name
        try:
            found = await self._server.find(f"{name}-{language}") or await self._server.find(name)
            if found is None:
                raise Unusable("there is none of that name under the label")
            _check_places(found, shipped)
        except Unreachable as error:
            return self._do_without(name, "unreachable", error, before.prompt if before else shipped)
        except Unusable as error:
            return self._do_without(name, "unusable", error, shipped)
        self._count("found")
        return replace(found, name=name)

    def _do_without(self, name: str, result: str, why: Exception, instead: Prompt) -> Prompt:
        self._count(result)
        log.warning("a prompt is not taken from Langfuse", extra={"prompt": name, "why": str(why)})
        return instead

    def _count(self, result: str) -> None:
        self._telemetry.count("roomlore_langfuse_prompts_total", labels={"result": result})


def _check_places(found: Prompt, shipped: Prompt) -> None:
    """A place nothing is put into would fail every evolution; a place that lacks would hide the messages."""
    missing, strange = shipped.places - found.places, found.places - shipped.places
    if missing:
        raise Unusable(f"it lacks {_shown(missing)}")
    if strange:
        raise Unusable(f"it asks for {_shown(strange)}, which nothing gives it")


def _shown(places: Collection[str]) -> str:
    return ", ".join("{{" + place + "}}" for place in sorted(places))
