"""What calls to providers tell: who is left alone for a while, and what is measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from roomlore.core.chat.breaker import Breaker
from roomlore.core.chat.models import Usage
from roomlore.core.chat.registry import Offer
from roomlore.core.errors import BadModelOutput, ModelUnavailable
from roomlore.ports.coordination import Clock, Telemetry

_ANSWERED = "answered"
_UNUSABLE = "unusable"
_ABANDONED = "abandoned"


@dataclass(slots=True)
class Call:
    """A call under way. `begun`: the provider has sent something; `result`: how it ended."""

    usage: Usage = field(default_factory=Usage)
    begun: bool = False
    result: str = _ABANDONED
    wait_seconds: float | None = None

    def add(self, usage: Usage) -> None:
        self.begun = True
        self.usage += usage


class Calls:
    """The calls of one process to all providers."""

    def __init__(self, *, clock: Clock, telemetry: Telemetry) -> None:
        self._clock = clock
        self._telemetry = telemetry
        self._breakers: dict[Offer, Breaker] = {}

    def allows(self, offer: Offer) -> bool:
        """Whether the provider may be asked now."""
        return self._breaker(offer).allows(self._clock.monotonic())

    def opened(self, offer: Offer) -> bool:
        """Whether it has failed so often that it is left alone."""
        return self._breaker(offer).is_open

    @contextmanager
    def noting(self, offer: Offer, *, seconds: float) -> Iterator[Call]:
        """Notes how a call ends that may last so long."""
        call, begun = Call(), self._clock.monotonic()
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

    def _after(self, breaker: Breaker, call: Call) -> Breaker:
        if call.result in (_ANSWERED, _UNUSABLE) or (call.result == _ABANDONED and call.begun):
            return breaker.succeeded()
        # A request that the provider will not take, or that nobody waited for, says nothing about the provider.
        if call.result in ("refused", _ABANDONED):
            return breaker.abandoned()
        return breaker.failed(self._clock.monotonic(), wait_seconds=call.wait_seconds)

    def _count(self, offer: Offer, call: Call, seconds: float) -> None:
        provider = offer.provider.name
        became = {"provider": provider, "result": call.result}
        self._telemetry.count("roomlore_model_calls_total", labels=became)
        self._telemetry.observe("roomlore_model_call_seconds", seconds, labels=became)
        for kind, tokens in (("input", call.usage.input_tokens), ("output", call.usage.output_tokens)):
            labels = {"provider": provider, "kind": kind}
            self._telemetry.count("roomlore_model_tokens_total", tokens, labels=labels)

    def _breaker(self, offer: Offer) -> Breaker:
        return self._breakers.get(offer, Breaker())
