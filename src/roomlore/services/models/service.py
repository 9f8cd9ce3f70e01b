"""The chain: the providers of a model in order, each with a time of its own, until one answers."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing

from roomlore.core.chat.failure import Failure, all_failed
from roomlore.core.chat.models import ChatAnswer, ChatPiece, ChatRequest, Usage
from roomlore.core.chat.registry import ModelEntry, ModelRegistry, Offer
from roomlore.core.errors import BadModelOutput, ModelUnavailable, RoomloreError, describe
from roomlore.ports.chat import ChatClient
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.services.models.calls import Calls
from roomlore.services.models.standings import ModelStanding, ModelTrial, ProviderStanding

_AGAIN_SECONDS = 0.2
_SHORT_WAIT_SECONDS = 2.0
_TEST = ChatRequest(messages=({"role": "user", "content": "Say: ready"},), max_tokens=64)

Check = Callable[[ChatAnswer], None]
"""Raises `BadModelOutput` where an answer cannot be used, so that the next provider is asked."""

log = logging.getLogger(__name__)


class ModelService:
    """Models by the ids of the registry. `client`: None where the extra is not installed. `keys`: API keys by
    environment variable."""

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
        self._calls = Calls(clock=clock, telemetry=telemetry)
        self._timeout_seconds = timeout_seconds

    async def list_available_models(self, *, internal: bool = False) -> list[ModelStanding]:
        """The models callers may choose from, in the order configured; `internal`: those for roomlore's own use too."""
        entries = self._registry.all() if internal else self._registry.list_available_models()
        return [self._standing(entry) for entry in entries]

    async def can_ask(self, model_id: str) -> bool:
        """Whether a provider of the model can be asked and is not left alone just now; False for an unknown model."""
        return any(self._usable(offer) and self._calls.allows(offer) for offer in self._offers(model_id))

    async def has_provider(self, model_id: str) -> bool:
        """Whether a provider of the model has a key, or needs none, however it does just now; False for an unknown
        model."""
        return any(map(self._usable, self._offers(model_id)))

    async def test(self, model_id: str | None = None) -> list[ModelTrial]:
        """Asks every provider of one model, or of all, for a word, and says what came back, or what it lacks.

        Providers that are left alone after failures are asked too. Raises `NotFound` for an unknown model.
        """
        entries = self._registry.all() if model_id is None else [self._registry.require(model_id)]
        return [await self._trial(entry, offer) for entry in entries for offer in entry.offers]

    async def complete(
        self, model_id: str, request: ChatRequest, *, timeout_seconds: float | None = None, check: Check | None = None
    ) -> ChatAnswer:
        """The first usable answer of the model's providers in order, each of which gets `timeout_seconds`.

        Raises `NotFound` for an unknown model, `BadModelOutput` where the last one asked failed the `check`, else
        `ModelUnavailable`; where several were asked, the text names each with its cause.
        """
        entry = self._registry.require(model_id)
        seconds = timeout_seconds or self._timeout_seconds
        failures: list[tuple[str, Failure]] = []
        for attempt, offer in enumerate(self._candidates(entry), 1):
            try:
                return await self._ask(offer, request, seconds, check)
            except (ModelUnavailable, BadModelOutput) as error:
                failures.append((offer.provider.name, error))
                self._warn(entry, offer, attempt, error)
        raise self._failed(entry, failures)

    async def stream(
        self, model_id: str, request: ChatRequest, *, timeout_seconds: float | None = None
    ) -> AsyncGenerator[ChatPiece, None]:
        """The answer as it is written. Another provider is asked only as long as nothing was handed out; what breaks
        off later raises `ModelUnavailable`. Closing the iterator ends the request."""
        entry = self._registry.require(model_id)
        seconds = timeout_seconds or self._timeout_seconds
        failures: list[tuple[str, Failure]] = []
        for attempt, offer in enumerate(self._candidates(entry), 1):
            begun = False
            try:
                async with aclosing(self._stream(offer, request, seconds)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except ModelUnavailable as error:
                self._warn(entry, offer, attempt, error)
                if begun:
                    raise
                failures.append((offer.provider.name, error))
        raise self._failed(entry, failures)

    async def _ask(self, offer: Offer, request: ChatRequest, seconds: float, check: Check | None) -> ChatAnswer:
        ends = self._clock.monotonic() + seconds
        try:
            return await self._once(offer, request, seconds, check)
        except ModelUnavailable as error:
            await self._until_repeat(offer, error, ends)
        return await self._once(offer, request, ends - self._clock.monotonic(), check)

    async def _stream(self, offer: Offer, request: ChatRequest, seconds: float) -> AsyncGenerator[ChatPiece, None]:
        ends = self._clock.monotonic() + seconds
        begun = False
        try:
            async with aclosing(self._pieces(offer, request, seconds)) as pieces:
                async for piece in pieces:
                    begun = True
                    yield piece
            return
        except ModelUnavailable as error:
            if begun:
                raise
            await self._until_repeat(offer, error, ends)
        async with aclosing(self._pieces(offer, request, seconds)) as pieces:
            async for piece in pieces:
                yield piece

    async def _until_repeat(self, offer: Offer, error: ModelUnavailable, ends: float) -> None:
        """Waits until the same may be asked of the provider once more; raises the error where that would not be safe,
        or not in time."""
        wait = _safe_after(error)
        if wait is None or self._calls.opened(offer) or self._clock.monotonic() + wait >= ends:
            raise error
        await asyncio.sleep(wait)

    async def _once(self, offer: Offer, request: ChatRequest, seconds: float, check: Check | None) -> ChatAnswer:
        with self._calls.noting(offer, seconds=seconds) as call:
            key = self._key(offer)
            answer = await self._connected().complete(offer, request, key=key, timeout_seconds=seconds)
            call.add(answer.usage)
            if check is not None:
                check(answer)
        return answer

    async def _pieces(self, offer: Offer, request: ChatRequest, seconds: float) -> AsyncGenerator[ChatPiece, None]:
        with self._calls.noting(offer, seconds=seconds) as call:
            stream = self._connected().stream(offer, request, key=self._key(offer), timeout_seconds=seconds)
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    call.add(piece.usage)
                    yield piece

    def _candidates(self, entry: ModelEntry) -> Iterator[Offer]:
        """Usable providers in order; one that keeps failing is passed over until its pause is over."""
        for offer in entry.offers:
            if not self._usable(offer):
                continue
            if self._calls.allows(offer):
                yield offer
            else:
                log.info("a model provider is left alone", extra={"provider": offer.provider.name})

    def _offers(self, model_id: str) -> list[Offer]:
        """Of any provider, usable or not; none for an unknown model."""
        return [offer for entry in self._registry.all() if entry.model_id == model_id for offer in entry.offers]

    def _usable(self, offer: Offer) -> bool:
        """Whether it has a key, or needs none."""
        return self._client is not None and (offer.provider.key_variable is None or self._key(offer) is not None)

    def _key(self, offer: Offer) -> str | None:
        return self._keys.get(offer.provider.key_variable or "") or None

    def _connected(self) -> ChatClient:
        assert self._client is not None
        return self._client

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
        return ModelStanding(
            model_id=entry.model_id,
            display_name=entry.display_name,
            internal=entry.internal,
            usable=any(map(self._usable, entry.offers)),
            providers=tuple(
                ProviderStanding(
                    name=offer.provider.name,
                    model_id=offer.model_id,
                    usable=self._usable(offer),
                    resting=not self._calls.allows(offer),
                    key_variable=offer.provider.key_variable,
                )
                for offer in entry.offers
            ),
        )

    async def _trial(self, entry: ModelEntry, offer: Offer) -> ModelTrial:
        begun = self._clock.monotonic()
        text, error, usage = "", "", Usage()
        if not self._usable(offer):
            error = self._lacking([offer])
        else:
            try:
                answer = await self._once(offer, _TEST, self._timeout_seconds, None)
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

    def _failed(self, entry: ModelEntry, failures: Sequence[tuple[str, Failure]]) -> Failure:
        return all_failed(entry.model_id, failures) if failures else self._nobody(entry)

    def _nobody(self, entry: ModelEntry) -> ModelUnavailable:
        """Why no provider was asked."""
        resting = "each failed lately and is tried again soon."
        lacking = resting if any(map(self._usable, entry.offers)) else self._lacking(entry.offers)
        return ModelUnavailable(
            f"No provider of the model {entry.model_id!r} can be asked: {lacking}", cause="unreachable"
        )

    def _lacking(self, offers: Sequence[Offer]) -> str:
        if self._client is None:
            return "install the extra: pip install 'roomlore[openai]'."
        variables = dict.fromkeys(offer.provider.key_variable for offer in offers if offer.provider.key_variable)
        return f"there is no key; set {' or '.join(variables)}."


def _safe_after(error: ModelUnavailable) -> float | None:
    """Seconds after which the same may be asked again, since it was surely not paid for: it never arrived, or it was
    turned away for a moment. None where it must not be."""
    if error.cause == "unreachable":
        return _AGAIN_SECONDS
    short = error.wait_seconds is not None and error.wait_seconds <= _SHORT_WAIT_SECONDS
    return (error.wait_seconds or _AGAIN_SECONDS) if error.cause == "limited" and short else None
