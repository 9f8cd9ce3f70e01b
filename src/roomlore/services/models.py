"""Calls to language models: providers in order, a circuit breaker for each, and summaries of sessions."""

import asyncio
import json
import logging
import math
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field

from roomlore.core.chat import (
    SUMMARY_MODEL,
    Breaker,
    ChatAnswer,
    ChatPiece,
    ChatRequest,
    Failure,
    ModelEntry,
    ModelRegistry,
    ModelStatus,
    Offer,
    ProviderStatus,
    Usage,
    all_failed,
    words_in,
)
from roomlore.core.errors import BadModelOutput, ModelUnavailable, NotFound, RoomloreError, describe
from roomlore.core.prompt import neutral
from roomlore.core.summary import echoes
from roomlore.core.text import graphemes
from roomlore.core.texts import Phrase
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import ChatClient, CheckAnswer, Language, Prompts, TokenCounter
from roomlore.ports.quotas import QuotaChecks

log = logging.getLogger(__name__)


_ANSWERED = "answered"
_UNUSABLE = "unusable"
_ABANDONED = "abandoned"
_RETRY_SECONDS = 0.2
_SHORT_WAIT_SECONDS = 2.0
_TEST = ChatRequest(messages=({"role": "user", "content": "Say: ready"},), max_tokens=64)
PROMPT = "session_summary"
_MIN_CHARACTERS = 5


@dataclass(slots=True)
class ModelCall:
    """A call in progress. `on_begin`: called when the provider sends its first piece. `begun`: True after that.
    `result`: how the call ended."""

    on_begin: Callable[[], None]
    usage: Usage = field(default_factory=Usage)
    begun: bool = False
    result: str = _ABANDONED
    wait_seconds: float | None = None

    def add(self, usage: Usage) -> None:
        if not self.begun:
            self.begun = True
            self.on_begin()
        self.usage += usage


class Calls:
    """The calls of one process to all providers."""

    def __init__(self, *, clock: Clock, telemetry: Telemetry) -> None:
        self._clock = clock
        self._telemetry = telemetry
        self._breakers: dict[Offer, Breaker] = {}

    def allows(self, offer: Offer) -> bool:
        """Return True if the provider may be asked now."""
        return self._breaker(offer).allows(self._clock.monotonic())

    def pause(self, offer: Offer) -> float:
        """Return the seconds until the provider's pause is over, 0 if it is."""
        return max(0.0, self._breaker(offer).open_until - self._clock.monotonic())

    def cause(self, offer: Offer) -> str:
        """Return the cause of its last failure, '' if its last call succeeded."""
        return self._breaker(offer).cause

    def opened(self, offer: Offer) -> bool:
        """Return True if it has failed so often that it is paused."""
        return self._breaker(offer).is_open

    @contextmanager
    def noting(self, offer: Offer, *, seconds: float) -> Iterator[ModelCall]:
        """Record how a call ends that may last so long."""
        call, begun = ModelCall(lambda: self._begins(offer)), self._clock.monotonic()
        self._breakers[offer] = self._breaker(offer).tried(self._clock.monotonic(), seconds=seconds)
        try:
            yield call
            call.result = _ANSWERED
        except ModelUnavailable as error:
            call.result, call.wait_seconds = error.cause, error.wait_seconds
            raise
        except BadModelOutput:
            call.result = _UNUSABLE
            raise
        finally:
            self._breakers[offer] = self._after(self._breaker(offer), call)
            self._count(offer, call, self._clock.monotonic() - begun)

    def _begins(self, offer: Offer) -> None:
        self._breakers[offer] = self._breaker(offer).begun(self._clock.monotonic())

    def _after(self, breaker: Breaker, call: ModelCall) -> Breaker:
        if call.result in (_ANSWERED, _UNUSABLE) or (call.result == _ABANDONED and call.begun):
            return breaker.succeeded()
        # A request that the provider refuses, or that the caller abandoned, says nothing about the provider.
        if call.result in ("refused", _ABANDONED):
            return breaker.abandoned()
        return breaker.failed(self._clock.monotonic(), wait_seconds=call.wait_seconds, cause=call.result)

    def _count(self, offer: Offer, call: ModelCall, seconds: float) -> None:
        provider = offer.provider.name
        became = {"provider": provider, "result": call.result}
        self._telemetry.count("roomlore_model_calls_total", labels=became)
        self._telemetry.observe("roomlore_model_call_seconds", seconds, labels=became)
        for kind, tokens in (("input", call.usage.input_tokens), ("output", call.usage.output_tokens)):
            labels = {"provider": provider, "kind": kind}
            self._telemetry.count("roomlore_model_tokens_total", tokens, labels=labels)

    def _breaker(self, offer: Offer) -> Breaker:
        return self._breakers.get(offer, Breaker())


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """The result of a short test request to a provider. `error`: '' if it answered, else why not."""

    model_id: str
    provider: str
    provider_model_id: str
    text: str
    error: str
    seconds: float
    usage: Usage


class ModelService:
    """Models by the ids of the registry. `client`: None if the extra is not installed. `keys`: API keys by environment
    variable. `quotas`: those of the tenants that requests name; None: nothing is counted. `tokens`: counts what a
    provider reports no tokens of. `trials`: the test requests of models that are asked about something else than
    words."""

    def __init__(
        self,
        *,
        registry: ModelRegistry,
        client: ChatClient | None,
        keys: Mapping[str, str],
        clock: Clock,
        telemetry: Telemetry,
        timeout_seconds: float,
        quotas: QuotaChecks | None = None,
        tokens: TokenCounter | None = None,
        trials: Mapping[str, ChatRequest] | None = None,
    ) -> None:
        self._quotas = quotas
        self._trials = trials or {}
        self._tokens = tokens
        self._registry = registry
        self._client = client
        self._keys = keys
        self._clock = clock
        self._calls = Calls(clock=clock, telemetry=telemetry)
        self._timeout_seconds = timeout_seconds

    async def list_available_models(self, *, internal: bool = False) -> list[ModelStatus]:
        """Return the models callers may choose from, in the configured order; `internal`: include those for roomlore's
        own use."""
        entries = self._registry.all() if internal else self._registry.list_available_models()
        return [self._status(entry) for entry in entries]

    async def can_ask(self, model_id: str) -> bool:
        """Return True if a provider of the model can be asked and is not paused; False for an unknown model."""
        return any(self._usable(offer) and self._calls.allows(offer) for offer in self._offers(model_id))

    async def has_provider(self, model_id: str) -> bool:
        """Return True if a provider of the model has a key, or needs none, even if it is paused; False for an unknown
        model."""
        return any(map(self._usable, self._offers(model_id)))

    async def test(self, model_id: str | None = None) -> list[ModelTrial]:
        """Send a short request to every provider of one model, or of all, and return what came back, or what is
        missing.

        Paused providers are asked too. Raise `NotFound` for an unknown model.
        """
        entries = self._registry.all() if model_id is None else [self._registry.require(model_id)]
        return [await self._trial(entry, offer) for entry in entries for offer in entry.offers]

    async def complete(
        self,
        model_id: str,
        request: ChatRequest,
        *,
        timeout_seconds: float | None = None,
        check: CheckAnswer | None = None,
    ) -> ChatAnswer:
        """Return the first usable answer of the model's providers in order, each of which gets `timeout_seconds`.

        Raise `NotFound` for an unknown model, `TokensExceeded` if the tenant of the request may use no more today,
        `BadModelOutput` if the last one asked failed the `check`, else `ModelUnavailable`; if several were asked, the
        text names each with its cause.
        """
        entry = self._registry.require(model_id)
        await self._check_quota(request)
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
        """Yield the answer as it is written. Another provider is asked only before the first piece; a later
        interruption raises `ModelUnavailable`. Closing the iterator ends the request. Raise as `complete` does."""
        entry = self._registry.require(model_id)
        await self._check_quota(request)
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

    async def _ask(self, offer: Offer, request: ChatRequest, seconds: float, check: CheckAnswer | None) -> ChatAnswer:
        ends = self._clock.monotonic() + seconds
        try:
            return await self._once(offer, request, seconds, check)
        except ModelUnavailable as error:
            await self._wait_to_retry(offer, error, ends)
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
            await self._wait_to_retry(offer, error, ends)
        async with aclosing(self._pieces(offer, request, seconds)) as pieces:
            async for piece in pieces:
                yield piece

    async def _wait_to_retry(self, offer: Offer, error: ModelUnavailable, ends: float) -> None:
        """Wait until the same request may be sent to the provider again; raise the error if that would not be safe, or
        not in time."""
        wait = _safe_after(error)
        if wait is None or self._calls.opened(offer) or self._clock.monotonic() + wait >= ends:
            raise error
        await asyncio.sleep(wait)

    async def _once(self, offer: Offer, request: ChatRequest, seconds: float, check: CheckAnswer | None) -> ChatAnswer:
        with self._calls.noting(offer, seconds=seconds) as call:
            key = self._key(offer)
            answer = await self._connected().complete(offer, request, key=key, timeout_seconds=seconds)
            call.add(answer.usage)
            await self._charge(request, call, [answer.text])
            if check is not None:
                check(answer)
        return answer

    async def _pieces(self, offer: Offer, request: ChatRequest, seconds: float) -> AsyncGenerator[ChatPiece, None]:
        with self._calls.noting(offer, seconds=seconds) as call:
            stream = self._connected().stream(offer, request, key=self._key(offer), timeout_seconds=seconds)
            texts: list[str] = []
            try:
                async with aclosing(stream) as pieces:
                    async for piece in pieces:
                        call.add(piece.usage)
                        texts.append(piece.text)
                        yield piece
            finally:
                await self._charge(request, call, texts)

    async def _check_quota(self, request: ChatRequest) -> None:
        if self._quotas is not None:
            await self._quotas.check_tokens(request.tenant)

    async def _charge(self, request: ChatRequest, call: ModelCall, texts: Sequence[str]) -> None:
        """Count the tokens that the provider reported. If it reported none, as after a stream that was closed early,
        count those of the texts."""
        if self._quotas is None:
            return
        tokens = call.usage.input_tokens + call.usage.output_tokens
        if not tokens and call.begun and self._tokens is not None:
            prompts = [json.dumps(words_in(message), ensure_ascii=False, default=str) for message in request.messages]
            tokens = sum(self._tokens.count([*prompts, "".join(texts)]))
        await self._quotas.charge_tokens(request.tenant, tokens)

    def _candidates(self, entry: ModelEntry) -> Iterator[Offer]:
        """Yield usable providers in order; one that keeps failing is skipped until its pause is over."""
        for offer in entry.offers:
            if not self._usable(offer):
                continue
            if self._calls.allows(offer):
                yield offer
            else:
                log.info("a model provider is left alone", extra={"provider": offer.provider.name})

    def _offers(self, model_id: str) -> list[Offer]:
        """Return the providers, usable or not; none for an unknown model."""
        return [offer for entry in self._registry.all() if entry.model_id == model_id for offer in entry.offers]

    def _usable(self, offer: Offer) -> bool:
        """Return True if it has a key, or needs none."""
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

    def _status(self, entry: ModelEntry) -> ModelStatus:
        return ModelStatus(
            model_id=entry.model_id,
            display_name=entry.display_name,
            internal=entry.internal,
            usable=any(map(self._usable, entry.offers)),
            providers=tuple(
                ProviderStatus(
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
            error = self._missing([offer])
        else:
            try:
                answer = await self._once(offer, self._trials.get(entry.model_id, _TEST), self._timeout_seconds, None)
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
        if not failures:
            return self._none_usable(entry)
        error = all_failed(entry.model_id, failures)
        if isinstance(error, ModelUnavailable):
            error.wait_seconds = self._pause(entry) or error.wait_seconds
        return error

    def _pause(self, entry: ModelEntry) -> float:
        """Return the seconds until a usable provider's pause is over, 0 if one is not paused, infinity if none is
        usable."""
        return min(map(self._calls.pause, filter(self._usable, entry.offers)), default=math.inf)

    def _none_usable(self, entry: ModelEntry) -> ModelUnavailable:
        """Return the error that says why no provider was asked."""
        usable = list(filter(self._usable, entry.offers))
        causes = ", ".join(f"{offer.provider.name}: {self._calls.cause(offer) or 'being tried'}" for offer in usable)
        resting = Phrase("model_failed_lately", causes=causes)
        why = resting if usable else self._missing(entry.offers)
        return ModelUnavailable(
            "model_unusable_why",
            model=repr(entry.model_id),
            why=why,
            cause="unreachable",
            wait_seconds=self._pause(entry),
        )

    def _missing(self, offers: Sequence[Offer]) -> str:
        if self._client is None:
            return Phrase("model_client_not_installed")
        variables = dict.fromkeys(offer.provider.key_variable for offer in offers if offer.provider.key_variable)
        return Phrase("model_key_missing", variables=" or ".join(variables))


def _safe_after(error: ModelUnavailable) -> float | None:
    """Return the seconds after which the same request may be sent again, because it was surely not paid for: it never
    arrived, or was rejected for a moment. Return None if it must not be."""
    if error.cause == "unreachable":
        return _RETRY_SECONDS
    short = error.wait_seconds is not None and error.wait_seconds <= _SHORT_WAIT_SECONDS
    return (error.wait_seconds or _RETRY_SECONDS) if error.cause == "limited" and short else None


class ChainSummarizer:
    """The ports `Summarizer` and `TenantSummarizer` on the model `memory-summary-model`."""

    def __init__(self, *, models: ModelService, prompts: Prompts, timeout_seconds: float, tenant: str = "") -> None:
        self._models = models
        self._prompts = prompts
        self._timeout_seconds = timeout_seconds
        self._tenant = tenant

    def for_tenant(self, tenant: str) -> "ChainSummarizer":
        """Return one whose tokens count for the quota of this tenant."""
        return ChainSummarizer(
            models=self._models, prompts=self._prompts, timeout_seconds=self._timeout_seconds, tenant=tenant
        )

    @property
    def name(self) -> str:
        return SUMMARY_MODEL

    async def summarise(self, *, previous: str, conversation: str, language: Language, max_tokens: int) -> str:
        """Return a summary. Each provider gets the time; one whose answer is empty or too short is skipped."""
        prompt = await self._prompts.find(PROMPT, language=language)
        values = {"previous": neutral(previous), "conversation": conversation, "max_tokens": str(max_tokens)}
        content = prompt.fill(values)
        request = ChatRequest(
            messages=({"role": "user", "content": content},), max_tokens=max_tokens * 2, tenant=self._tenant
        )
        try:
            answer = await self._models.complete(
                SUMMARY_MODEL, request, timeout_seconds=self._timeout_seconds, check=_long_enough
            )
        except NotFound as error:
            raise ModelUnavailable("model_not_configured", model=repr(SUMMARY_MODEL)) from error
        if echoes(answer.text, prompt.fill(dict.fromkeys(values, ""))):
            raise BadModelOutput("model_repeats_instructions")
        return answer.text

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _long_enough(answer: ChatAnswer) -> None:
    if graphemes(answer.text.strip()) < _MIN_CHARACTERS:
        raise BadModelOutput("model_answer_too_short", most=_MIN_CHARACTERS)
