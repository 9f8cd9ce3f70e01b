"""The chain: the providers of a model in order, each with a time of its own, until one answers."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from roomlore.core.chat.breaker import Breaker
from roomlore.core.chat.models import ChatAnswer, ChatPiece, ChatRequest, Usage
from roomlore.core.chat.registry import ModelEntry, ModelRegistry, Offer
from roomlore.core.errors import BadModelOutput, ModelUnavailable, RoomloreError, describe
from roomlore.ports.chat import ChatClient
from roomlore.ports.coordination import Clock, Telemetry

_AGAIN_SECONDS = 0.2
_SHORT_WAIT_SECONDS = 2.0
_TEST = ChatRequest(messages=({"role": "user", "content": "Say: ready"},), max_tokens=8)

Check = Callable[[ChatAnswer], None]
"""Raises `BadModelOutput` where an answer cannot be used, so that the next provider is asked."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProviderStanding:
    """A provider of a model: whether it can be asked at all (it has a key or needs none), and whether it is left alone
    for the moment after failures. `key_variable`: where its key is looked for."""

    name: str
    model_id: str
    usable: bool
    resting: bool
    key_variable: str | None


@dataclass(frozen=True, slots=True)
class ModelStanding:
    """A model callers may choose, with its providers in order."""

    model_id: str
    display_name: str
    internal: bool
    providers: tuple[ProviderStanding, ...]

    @property
    def usable(self) -> bool:
        return any(provider.usable for provider in self.providers)


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """What came back when a provider was asked something small. `error`: '' where it answered."""

    model_id: str
    provider: str
    provider_model_id: str
    text: str
    error: str
    seconds: float
    usage: Usage


class ModelService:
    """Models by the ids of the registry. `keys`: API keys by environment variable."""

    def __init__(
        self,
        *,
        registry: ModelRegistry,
        client: ChatClient | None,
        keys: Mapping[str, str],
        clock: Clock,
        telemetry: Telemetry,
        timeout_seconds: float,
    ) -> None:
        self._registry = registry
        self._client = client
        self._keys = keys
        self._clock = clock
        self._telemetry = telemetry
        self._timeout_seconds = timeout_seconds
        self._breakers: dict[Offer, Breaker] = {}

    async def list_available_models(self, *, internal: bool = False) -> list[ModelStanding]:
        """The models callers may choose from, in the order configured; `internal`: those for roomlore's own use too."""
        entries = self._registry.all() if internal else self._registry.list_available_models()
        return [self._standing(entry) for entry in entries]

    async def test(self, model_id: str | None = None) -> list[ModelTrial]:
        """Asks every usable provider of one model, or of all, for a word, and says what came back."""
        entries = self._registry.all() if model_id is None else [self._registry.require(model_id)]
        return [await self._trial(entry, offer) for entry in entries for offer in self._usable(entry)]

    async def complete(
        self, model_id: str, request: ChatRequest, *, timeout_seconds: float | None = None, check: Check | None = None
    ) -> ChatAnswer:
        """The first usable answer of the model's providers in order, each of which gets `timeout_seconds`.

        Raises `NotFound` for an unknown model, `BadModelOutput` where the last to answer failed the `check`, else
        `ModelUnavailable`.
        """
        entry = self._registry.require(model_id)
        seconds = timeout_seconds or self._timeout_seconds
        problem: RoomloreError | None = None
        for attempt, offer in enumerate(self._candidates(entry), 1):
            try:
                return await self._ask(offer, request, seconds, check)
            except (ModelUnavailable, BadModelOutput) as error:
                problem = error
                self._warn(entry, offer, attempt, error)
        raise problem or _nobody(entry)

    async def stream(
        self, model_id: str, request: ChatRequest, *, timeout_seconds: float | None = None
    ) -> AsyncGenerator[ChatPiece, None]:
        """The answer as it is written. Another provider is asked only as long as nothing was handed out; what breaks
        off later raises `ModelUnavailable`. Closing the iterator ends the request."""
        entry = self._registry.require(model_id)
        seconds = timeout_seconds or self._timeout_seconds
        problem: RoomloreError | None = None
        for attempt, offer in enumerate(self._candidates(entry), 1):
            begun = False
            try:
                async with aclosing(self._pieces(offer, request, seconds)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except ModelUnavailable as error:
                self._warn(entry, offer, attempt, error)
                if begun:
                    raise
                problem = error
        raise problem or _nobody(entry)

    async def _ask(self, offer: Offer, request: ChatRequest, seconds: float, check: Check | None) -> ChatAnswer:
        for again in (True, False):
            try:
                answer = await self._once(offer, request, seconds)
            except ModelUnavailable as error:
                if not (again and _safe_to_repeat(error)):
                    raise
                await asyncio.sleep(error.wait_seconds or _AGAIN_SECONDS)
            else:
                if check is not None:
                    check(answer)
                return answer
        raise AssertionError("the second try returns or raises")

    async def _once(self, offer: Offer, request: ChatRequest, seconds: float) -> ChatAnswer:
        self._begin(offer, seconds)
        try:
            answer = await self._connected().complete(offer, request, key=self._key(offer), timeout_seconds=seconds)
        except ModelUnavailable as error:
            self._failed(offer, error)
            raise
        self._succeeded(offer, answer.usage)
        return answer

    async def _pieces(self, offer: Offer, request: ChatRequest, seconds: float) -> AsyncGenerator[ChatPiece, None]:
        self._begin(offer, seconds)
        usage = Usage()
        try:
            stream = self._connected().stream(offer, request, key=self._key(offer), timeout_seconds=seconds)
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    usage += piece.usage
                    yield piece
        except ModelUnavailable as error:
            self._failed(offer, error)
            raise
        self._succeeded(offer, usage)

    def _candidates(self, entry: ModelEntry) -> Iterator[Offer]:
        """Usable providers in order; one that keeps failing is passed over until its pause is over."""
        for offer in self._usable(entry):
            if self._breaker(offer).allows(self._clock.monotonic()):
                yield offer
            else:
                log.warning("a model provider is left alone", extra={"provider": offer.provider.name})

    def _usable(self, entry: ModelEntry) -> list[Offer]:
        return [offer for offer in entry.offers if self._has_key(offer)] if self._client else []

    def _has_key(self, offer: Offer) -> bool:
        return offer.provider.key_variable is None or bool(self._key(offer))

    def _key(self, offer: Offer) -> str | None:
        return self._keys.get(offer.provider.key_variable or "")

    def _connected(self) -> ChatClient:
        if self._client is None:
            raise ModelUnavailable("Models need the extra: pip install 'roomlore[openai]'.")
        return self._client

    def _breaker(self, offer: Offer) -> Breaker:
        return self._breakers.get(offer, Breaker())

    def _begin(self, offer: Offer, seconds: float) -> None:
        self._breakers[offer] = self._breaker(offer).tried(self._clock.monotonic(), seconds=seconds)

    def _failed(self, offer: Offer, error: ModelUnavailable) -> None:
        """A request the provider will not take says nothing about the provider."""
        if error.cause != "refused":
            now = self._clock.monotonic()
            self._breakers[offer] = self._breaker(offer).failed(now, wait_seconds=error.wait_seconds)
        self._count(offer, error.cause)

    def _succeeded(self, offer: Offer, usage: Usage) -> None:
        self._breakers[offer] = self._breaker(offer).succeeded()
        self._count(offer, "answered")
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            labels = {"provider": offer.provider.name, "kind": kind}
            self._telemetry.count("roomlore_model_tokens_total", tokens, labels=labels)

    def _count(self, offer: Offer, result: str) -> None:
        labels = {"provider": offer.provider.name, "result": result}
        self._telemetry.count("roomlore_model_calls_total", labels=labels)

    def _warn(self, entry: ModelEntry, offer: Offer, attempt: int, error: RoomloreError) -> None:
        log.warning(
            "a model provider gave no usable answer",
            extra={
                "model": entry.model_id,
                "provider": offer.provider.name,
                "attempt": attempt,
                "cause": error.cause if isinstance(error, ModelUnavailable) else "unusable",
                "why": describe(error),
            },
        )

    def _standing(self, entry: ModelEntry) -> ModelStanding:
        now = self._clock.monotonic()
        return ModelStanding(
            model_id=entry.model_id,
            display_name=entry.display_name,
            internal=entry.internal,
            providers=tuple(
                ProviderStanding(
                    name=offer.provider.name,
                    model_id=offer.model_id,
                    usable=self._client is not None and self._has_key(offer),
                    resting=not self._breaker(offer).allows(now),
                    key_variable=offer.provider.key_variable,
                )
                for offer in entry.offers
            ),
        )

    async def _trial(self, entry: ModelEntry, offer: Offer) -> ModelTrial:
        begun = self._clock.monotonic()
        text, error, usage = "", "", Usage()
        try:
            answer = await self._once(offer, _TEST, self._timeout_seconds)
            text, usage = answer.text, answer.usage
        except ModelUnavailable as problem:
            error = str(problem)
        return ModelTrial(
            model_id=entry.model_id,
            provider=offer.provider.name,
            provider_model_id=offer.model_id,
            text=text,
            error=error,
            seconds=self._clock.monotonic() - begun,
            usage=usage,
        )


def _safe_to_repeat(error: ModelUnavailable) -> bool:
    """A request that never arrived, or that is asked for again soon, was not paid for."""
    if error.cause == "unreachable":
        return True
    return error.cause == "limited" and error.wait_seconds is not None and error.wait_seconds <= _SHORT_WAIT_SECONDS


def _nobody(entry: ModelEntry) -> ModelUnavailable:
    variables = sorted({offer.provider.key_variable for offer in entry.offers if offer.provider.key_variable})
    return ModelUnavailable(
        f"No provider of the model {entry.model_id!r} can be asked: set "
        f"{' or '.join(variables) or 'a provider in roomlore.yaml'}, or wait until one that failed is tried again.",
        cause="unreachable",
    )
