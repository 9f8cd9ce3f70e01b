"""The chain of providers: who is asked, in which order, how often, and what is told and counted."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

import pytest

from roomlore.adapters.chat import open_chat
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.chat import (
    EVOLVE_MODEL,
    SHIPPED,
    SUMMARY_MODEL,
    ChatAnswer,
    ChatRequest,
    ModelRegistry,
    ToolCall,
    Usage,
)
from roomlore.core.errors import BadModelOutput, ModelUnavailable, NotFound
from roomlore.services.models import ModelService
from roomlore.surfaces.jsonable import to_jsonable
from roomlore_testkit import FrozenClock
from roomlore_testkit.model_server import Break, Drops, Fails, Hangs, ModelServer, Says, Script, Sends

KEYS = {"FIRST_KEY": "sk-first-1", "SECOND_KEY": "sk-second-2", "THIRD_KEY": "sk-third-3"}
NAMES = ("first", "second", "third")
SHIPPED_OFFERS = {model_id: len(SHIPPED[model_id]["providers"]) for model_id in (SUMMARY_MODEL, EVOLVE_MODEL)}
SOON = 2.0  # when one that hangs is given up: far more than a busy machine takes to answer
NEVER = 60.0
languages = pytest.mark.parametrize(
    ("question", "answer"), [("What is the plan?", "We meet at nine."), ("计划是什么？", "我们九点见面。")]
)


def asked(question: str = "What is the plan?") -> ChatRequest:
    return ChatRequest(messages=[{"role": "user", "content": question}])


class Chain:
    """A model `m` at three providers, each a server of its own, with a clock that stands still."""

    def __init__(self, servers: list[ModelServer], keys: dict[str, str]) -> None:
        self.servers = servers
        self.clock = FrozenClock()
        self.telemetry = PrometheusTelemetry(self.clock)
        self.client = open_chat(clock=self.clock)
        providers = {
            name: {"base_url": server.url, "key_variable": f"{name.upper()}_KEY"}
            for name, server in zip(NAMES, servers, strict=True)
        }
        offers = [{"name": name, "model_id": f"{name}/tiny"} for name in NAMES]
        self.registry = ModelRegistry.read({"m": {"providers": offers}}, providers)
        self.models = ModelService(
            registry=self.registry,
            client=self.client,
            keys=keys,
            clock=self.clock,
            telemetry=self.telemetry,
            timeout_seconds=NEVER,
        )

    @property
    def counts(self) -> list[int]:
        """Return the number of requests to each provider."""
        return [len(server.requests) for server in self.servers]

    async def complete(self, request: ChatRequest | None = None, **more) -> ChatAnswer:
        return await self.models.complete("m", request or asked(), **more)

    async def streamed(self, request: ChatRequest | None = None, **more) -> tuple[str, str]:
        """The provider that answered, and what."""
        pieces = [piece async for piece in self.models.stream("m", request or asked(), **more)]
        return pieces[-1].provider, "".join(piece.text for piece in pieces)

    async def said(self, streaming: bool, **more) -> tuple[str, str]:
        """The provider that answered, and what, either way."""
        if streaming:
            return await self.streamed(**more)
        given = await self.complete(**more)
        return given.provider, given.text

    def total(self, name: str, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0


async def soon(met: Callable[[], bool]) -> None:
    """Waits for what a server notices in its own time."""
    async with asyncio.timeout(15):
        while not met():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)


def warnings(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, int, str]]:
    """Of which model, which provider, at which attempt, and the cause."""
    told = [record for record in caplog.records if record.levelno == logging.WARNING]
    return [(record.model, record.provider, record.attempt, record.cause) for record in told]


Build = Callable[..., "asyncio.Future[Chain]"]


@pytest.fixture
async def chain() -> AsyncIterator[Build]:
    async with AsyncExitStack() as stack:

        async def build(*scripts: Script | Says | Fails | Sends | Hangs | Drops, keys: dict[str, str] = KEYS) -> Chain:
            """One script for each provider; a single answer is what it always gives."""
            given = [*scripts, *["spare"] * (len(NAMES) - len(scripts))]
            servers = [ModelServer(one) if isinstance(one, list) else ModelServer(default=one) for one in given]
            for server in servers:
                await stack.enter_async_context(server)
            made = Chain(servers, keys)
            stack.push_async_callback(made.client.close)
            return made

        yield build


# Who is asked.


@languages
async def test_the_first_provider_is_asked_and_no_other(chain, question, answer):
    made = await chain(answer)
    given = await made.complete(asked(question))
    assert (given.text, given.provider, given.model_id) == (answer, "first", "first/tiny")
    assert made.servers[0].requests[0].prompt == question
    assert await made.streamed(asked(question)) == ("first", answer)
    assert made.counts == [2, 0, 0]


@pytest.mark.parametrize("keys", [{"SECOND_KEY": "k"}, {"FIRST_KEY": "", "SECOND_KEY": "k"}])
async def test_a_provider_without_a_key_is_passed_over(chain, keys):
    made = await chain("one", "two", keys=keys)
    assert (await made.complete()).provider == "second"
    assert (await made.streamed())[0] == "second"
    assert made.counts == [0, 2, 0]
    assert made.servers[1].requests[0].key == "k"


async def test_one_that_needs_no_key_is_asked_without_one(chain):
    made = await chain("one", keys={})
    registry = ModelRegistry.read(
        {"m": {"providers": [{"name": "ollama", "model_id": "q"}]}}, {"ollama": {"base_url": made.servers[0].url}}
    )
    models = ModelService(
        registry=registry,
        client=made.client,
        keys=KEYS,
        clock=made.clock,
        telemetry=made.telemetry,
        timeout_seconds=NEVER,
    )
    assert (await models.complete("m", asked())).provider == "ollama"
    assert made.servers[0].requests[0].key is None


@pytest.mark.parametrize("streaming", [False, True])
async def test_without_any_key_the_error_names_the_variables(chain, streaming):
    made = await chain(keys={})
    with pytest.raises(ModelUnavailable, match="no key; set FIRST_KEY or SECOND_KEY or THIRD_KEY") as caught:
        await (made.streamed() if streaming else made.complete())
    assert caught.value.cause == "unreachable"


async def test_without_the_extra_the_error_names_it(chain):
    made = await chain()
    registry = ModelRegistry.read({}, {})
    models = ModelService(
        registry=registry, client=None, keys=KEYS, clock=made.clock, telemetry=made.telemetry, timeout_seconds=NEVER
    )
    with pytest.raises(ModelUnavailable, match=r"pip install 'roomlore\[openai\]'"):
        await models.complete("memory-summary-model", asked())
    assert [trial.error[:17] for trial in await models.test()] == ["install the extra"] * sum(SHIPPED_OFFERS.values())


async def test_an_unknown_model(chain):
    made = await chain()
    with pytest.raises(NotFound, match="no model 'nix'; there are m"):
        await made.models.complete("nix", asked())
    with pytest.raises(NotFound, match="no model 'nix'"):
        await anext(made.models.stream("nix", asked()))
    with pytest.raises(NotFound, match="no model 'nix'"):
        await made.models.test("nix")


# When the next is asked.

TROUBLES = [
    (Drops(), "dropped"),
    (Says(breaks=Break(after=0, how="drop")), "dropped"),
    (Fails(status=401), "refused"),
    (Fails(status=404), "refused"),
    (Fails(status=408), "timeout"),
    (Fails(status=429), "limited"),
    (Fails(status=429, headers={"retry-after": "60"}), "limited"),
    (Fails(status=500), "broken"),
    (Fails(status=503, headers={"retry-after": "1"}), "broken"),
    (Fails(status=504), "timeout"),
    (Sends(body=b"<html>"), "broken"),
    (Says(content=None), "broken"),
    (Says(content=""), "broken"),
]


@pytest.mark.parametrize(("answer", "cause"), TROUBLES, ids=str)
@pytest.mark.parametrize("streaming", [False, True])
async def test_whatever_goes_wrong_the_next_is_asked_and_the_first_not_again(chain, caplog, answer, cause, streaming):
    made = await chain(answer, "二号回答。")
    assert await made.said(streaming, timeout_seconds=NEVER) == ("second", "二号回答。")
    assert made.counts == [1, 1, 0]
    assert warnings(caplog) == [("m", "first", 1, cause)]
    assert made.total("roomlore_model_calls_total", provider="first", result=cause) == 1


async def test_one_that_hangs_is_given_up_and_the_next_is_asked(chain, caplog):
    await (await chain()).complete()  # the first request of a process takes as long as some providers are given here
    hanging = (Hangs(), Says(breaks=Break(after=0, how="hang")))
    both = [(await chain(answer, "二号回答。"), streaming) for answer in hanging for streaming in (False, True)]
    said = await asyncio.gather(*(made.said(streaming, timeout_seconds=SOON) for made, streaming in both))
    assert said == [("second", "二号回答。")] * 4
    assert [made.counts for made, _ in both] == [[1, 1, 0]] * 4
    assert warnings(caplog) == [("m", "first", 1, "timeout")] * 4
    assert all(made.total("roomlore_model_calls_total", provider="first", result="timeout") == 1 for made, _ in both)


async def test_each_provider_has_the_whole_time(chain):
    made = await chain(Hangs(), Hangs(), "at last")
    begun = time.monotonic()
    assert (await made.complete(timeout_seconds=SOON)).provider == "third"
    assert 2 * SOON <= time.monotonic() - begun < NEVER


async def test_when_all_fail_the_error_names_each_and_is_of_the_last_ones_kind(chain, caplog):
    made = await chain(Fails(status=500), Fails(status=401), Hangs())
    asking = [made.said(streaming, timeout_seconds=SOON) for streaming in (False, True)]
    caught = await asyncio.gather(*asking, return_exceptions=True)
    assert [(type(error), error.cause) for error in caught] == [(ModelUnavailable, "timeout")] * 2
    assert [str(error) for error in caught] == [
        "None of the 3 providers of the model 'm' that were asked could be used: "
        "1. The provider first answers with HTTP 500: try again later. "
        "2. The provider second answers with HTTP 401: check the key in SECOND_KEY. "
        f"3. The provider third did not answer within {SOON:g} s: try later, or raise model_timeout_seconds."
    ] * 2
    assert not any(key in str(error) for key in KEYS.values() for error in caught)
    each = [("m", "first", 1, "broken"), ("m", "second", 2, "refused"), ("m", "third", 3, "timeout")]
    assert sorted(warnings(caplog)) == sorted(each * 2)


def long_enough(answer: ChatAnswer) -> None:
    if len(answer.text.strip()) < 5:
        raise BadModelOutput("The summary is too short.")


@pytest.mark.parametrize("short", ["嗯", "ok", "  ok \n  "])
async def test_an_answer_that_cannot_be_used_is_the_next_providers_turn(chain, caplog, short):
    made = await chain(short, "足够长的回答")
    assert (await made.complete(check=long_enough)).provider == "second"
    assert made.counts == [1, 1, 0]
    assert [(r.provider, r.cause) for r in caplog.records if r.levelno == logging.WARNING] == [("first", "unusable")]
    assert made.total("roomlore_model_calls_total", provider="first", result="unusable") == 1
    assert made.total("roomlore_model_tokens_total", provider="first", kind="input") == 7


async def test_when_no_answer_can_be_used_that_is_the_error(chain):
    made = await chain("嗯", "ok", "hm")
    with pytest.raises(BadModelOutput) as caught:
        await made.complete(check=long_enough)
    assert str(caught.value) == (
        "None of the 3 providers of the model 'm' that were asked could be used: "
        "1. The provider first: The summary is too short. 2. The provider second: The summary is too short. "
        "3. The provider third: The summary is too short."
    )


async def test_one_that_was_asked_alone_is_told_as_it_is(chain):
    made = await chain(Fails(status=500), keys={"FIRST_KEY": "sk-first-1"})
    with pytest.raises(ModelUnavailable) as caught:
        await made.complete()
    assert str(caught.value) == "The provider first answers with HTTP 500: try again later."


@pytest.mark.parametrize(
    ("answers", "kind", "cause"),
    [
        (("嗯", Fails(status=429), Fails(status=404)), ModelUnavailable, "refused"),
        ((Fails(status=404), Fails(status=500), "嗯"), BadModelOutput, None),
    ],
    ids=["the last one refuses", "the last one says too little"],
)
async def test_the_kind_of_error_is_the_last_ones(chain, answers, kind, cause):
    made = await chain(*answers)
    with pytest.raises(kind) as caught:
        await made.complete(check=long_enough)
    assert [f"{place}. The provider {name}" in str(caught.value) for place, name in enumerate(NAMES, 1)] == [True] * 3
    assert getattr(caught.value, "cause", None) == cause


async def test_unusable_answers_do_not_make_a_provider_rest(chain):
    made = await chain("嗯", "long enough")
    for _ in range(5):
        await made.complete(check=long_enough)
    assert made.counts == [5, 5, 0]


# What is asked twice.


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_request_that_never_arrived_is_repeated_once(chain, streaming):
    made = await chain("back again")
    await made.servers[0].stop()

    async def come_back() -> None:
        while not made.total("roomlore_model_calls_total", provider="first", result="unreachable"):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)
        await made.servers[0].start()

    back = asyncio.ensure_future(come_back())
    text = (await made.streamed())[1] if streaming else (await made.complete()).text
    await back
    assert text == "back again"
    assert made.total("roomlore_model_calls_total", provider="first", result="unreachable") == 1
    assert made.counts == [1, 0, 0]


async def test_and_only_once(chain):
    made = await chain()
    await made.servers[0].stop()
    assert (await made.complete()).provider == "second"
    assert made.total("roomlore_model_calls_total", provider="first", result="unreachable") == 2


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("headers", [{"retry-after": "0.1"}, {"retry-after-ms": "100"}, {"retry-after": "0"}])
async def test_a_short_limit_is_waited_for_once(chain, headers, streaming):
    made = await chain([Fails(status=429, headers=headers), "now you may"])
    text = (await made.streamed())[1] if streaming else (await made.complete()).text
    assert text == "now you may"
    first, second = made.servers[0].requests
    assert second.at - first.at >= 0.1
    assert made.counts == [2, 0, 0]


async def test_a_limit_twice_is_the_next_providers_turn(chain):
    made = await chain(Fails(status=429, headers={"retry-after": "0.1"}))
    assert (await made.complete()).provider == "second"
    assert made.counts == [2, 1, 0]


async def test_a_wait_that_leaves_no_time_is_not_waited_for(chain):
    made = await chain(Fails(status=429, headers={"retry-after": "2"}))
    assert (await made.complete(timeout_seconds=2)).provider == "second"
    assert made.counts == [1, 1, 0]


# Who is left alone.


async def failing(chain, answer=None, *, times: int) -> Chain:
    made = await chain(answer or Fails(status=500))
    for _ in range(times):
        await made.complete()
    return made


async def test_after_three_failures_in_a_row_a_provider_is_left_alone(chain):
    made = await failing(chain, times=5)
    assert made.counts == [3, 5, 0]
    assert [p.resting for p in (await made.models.list_available_models())[0].providers] == [True, False, False]


async def test_the_failure_that_makes_a_provider_rest_is_not_repeated(chain):
    made = await chain()
    await made.servers[0].stop()
    for _ in range(3):
        await made.complete()
    assert made.total("roomlore_model_calls_total", provider="first", result="unreachable") == 3


async def test_a_success_between_starts_the_count_again(chain):
    bad = Fails(status=500)
    made = await chain([bad, bad, "good", bad, bad, "good"])
    for _ in range(6):
        await made.complete()
    assert made.counts == [6, 4, 0]


async def test_after_its_pause_one_call_tries_and_the_others_go_past(chain):
    made = await failing(chain, times=3)
    made.servers[0].default = Says(text="back", after=0.1)
    made.clock.advance(14.9)
    assert (await made.complete()).provider == "second"
    made.clock.advance(0.2)
    given = await asyncio.gather(*(made.complete() for _ in range(8)))
    assert [answer.provider for answer in given].count("first") == 1
    assert made.counts[0] == 4
    assert (await made.complete()).provider == "first"


async def test_a_try_that_fails_lengthens_the_pause(chain):
    made = await failing(chain, times=3)
    made.clock.advance(15)
    await made.complete()
    assert made.counts[0] == 4
    made.clock.advance(29)
    await made.complete()
    assert made.counts[0] == 4
    made.clock.advance(1)
    await made.complete()
    assert made.counts[0] == 5


async def test_a_stream_that_has_begun_keeps_nobody_off(chain):
    made = await failing(chain, times=3)
    made.clock.advance(15)
    made.servers[0].default = Says(text="a long answer " * 60, between=0.3)
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in made.models.stream("m", asked()):
            begun.set()

    reading = asyncio.ensure_future(read())
    await asyncio.wait_for(begun.wait(), 30)
    made.servers[0].default = "back"
    assert (await made.complete()).provider == "first"
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_try_that_nobody_waited_for_lets_the_next_one_try(chain, streaming):
    made = await failing(chain, times=3)
    made.clock.advance(15)
    made.servers[0].default = Hangs()
    before = made.counts[0]
    call = asyncio.ensure_future(made.streamed() if streaming else made.complete())
    await soon(lambda: made.counts[0] > before)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert made.total("roomlore_model_calls_total", provider="first", result="abandoned") == 1
    made.servers[0].default = "back"
    assert (await made.complete()).provider == "first"


async def test_calls_that_fail_together_lengthen_nothing(chain):
    made = await chain(Fails(status=500, after=0.05))
    await asyncio.gather(*(made.complete() for _ in range(12)))
    made.clock.advance(15)
    made.servers[0].default = "back"
    assert (await made.complete()).provider == "first"


async def test_what_a_provider_refuses_does_not_make_it_rest(chain):
    made = await failing(chain, Fails(status=400), times=5)
    assert made.counts == [5, 5, 0]


async def test_a_limit_is_kept_as_long_as_asked(chain):
    made = await chain([Fails(status=429, headers={"retry-after": "60"})])
    await made.complete()
    made.clock.advance(59)
    assert (await made.complete()).provider == "second"
    made.clock.advance(1)
    assert (await made.complete()).provider == "first"


async def test_when_all_rest_the_error_says_so(chain):
    made = await chain(*[Fails(status=500)] * 3)
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="HTTP 500"):
            await made.complete()
    made.clock.advance(5)
    with pytest.raises(ModelUnavailable, match=r"each failed lately \(first: broken, second: broken, third") as told:
        await made.complete()
    assert told.value.wait_seconds == 10
    assert made.counts == [3, 3, 3]


# Streams.


@languages
async def test_a_stream_that_breaks_before_its_first_piece_goes_on_elsewhere(chain, question, answer):
    made = await chain(Says(breaks=Break(after=0, how="inside")), answer)
    assert await made.streamed(asked(question)) == ("second", answer)


@pytest.mark.parametrize(
    ("how", "cause"), [("drop", "dropped"), ("inside", "dropped"), ("hang", "timeout"), ("end", "dropped")]
)
async def test_a_stream_that_breaks_later_is_an_error(chain, caplog, how, cause):
    made = await chain(Says(pieces=["一", "二", "三"], breaks=Break(after=2, how=how)))
    pieces = made.models.stream("m", asked(), timeout_seconds=SOON)
    assert [(await anext(pieces)).text, (await anext(pieces)).text] == ["一", "二"]
    with pytest.raises(ModelUnavailable) as caught:
        await anext(pieces)
    assert caught.value.cause == cause
    assert made.counts == [1, 0, 0]
    assert [r.cause for r in caplog.records if r.levelno == logging.WARNING] == [cause]


async def test_closing_a_stream_ends_the_request_and_blames_nobody(chain):
    made = await chain(Says(pieces=["a"] * 500, between=0.01))
    for _ in range(4):
        async with aclosing(made.models.stream("m", asked())) as pieces:
            await anext(pieces)
    await soon(lambda: all(request.left_at is not None for request in made.servers[0].requests))
    await soon(lambda: made.servers[0].open_connections == 0)
    assert made.counts == [4, 0, 0]
    assert made.total("roomlore_model_calls_total", provider="first", result="abandoned") == 4


async def test_tool_calls_come_whole_with_the_last_piece(chain):
    call = ToolCall("c1", "look_up", '{"词": "茶"}')
    made = await chain(Says(tool_calls=[call]))
    pieces = [piece async for piece in made.models.stream("m", asked())]
    assert [piece.tool_calls for piece in pieces] == [(call,)]
    assert (await made.complete()).tool_calls == (call,)


# What is counted and shown.


async def test_usage_is_counted_by_provider(chain):
    made = await chain([Fails(status=500), "a", "b"], "c")
    await made.complete()
    await made.complete()
    await made.streamed()
    calls = {
        (provider, result): made.total("roomlore_model_calls_total", provider=provider, result=result)
        for provider in NAMES
        for result in ("answered", "broken")
    }
    assert {key: n for key, n in calls.items() if n} == {
        ("first", "answered"): 2, ("first", "broken"): 1, ("second", "answered"): 1,
    }  # fmt: skip
    tokens = [made.total("roomlore_model_tokens_total", provider="first", kind=kind) for kind in ("input", "output")]
    assert tokens == [14, 6]


class Charges:
    """A double of `QuotaChecks` that keeps what is charged."""

    def __init__(self) -> None:
        self.charged: list[tuple[str, int]] = []

    async def check_tokens(self, tenant: str) -> None:
        pass

    async def charge_tokens(self, tenant: str, tokens: int) -> None:
        self.charged.append((tenant, tokens))


async def test_a_stream_that_is_closed_early_counts_for_the_quota_and_one_that_never_began_does_not(chain):
    made = await chain([Says(pieces=["一二三"] * 500, between=0.01), "ready", *[Fails(status=401)] * 2])
    quotas = Charges()
    models = ModelService(
        registry=made.registry,
        client=made.client,
        keys={"FIRST_KEY": "a"},
        clock=made.clock,
        telemetry=made.telemetry,
        timeout_seconds=NEVER,
        quotas=quotas,
        tokens=EncodingTokens(),
    )
    request = replace(asked("What is the plan?"), tenant="team")
    async with aclosing(models.stream("m", request)) as pieces:
        await anext(pieces)
    ((tenant, tokens),) = quotas.charged
    assert tenant == "team"
    assert 8 < tokens < 40, "the question and what was said of the answer"
    assert [piece async for piece in models.stream("m", request)]
    assert quotas.charged[1] == ("team", 10), "as the provider reports"
    with pytest.raises(ModelUnavailable):
        await models.complete("m", request)
    with pytest.raises(ModelUnavailable):
        await anext(models.stream("m", request))
    assert sum(tokens for _, tokens in quotas.charged[2:]) == 0


async def test_models_are_shown_without_internal_ones_and_never_a_key(chain):
    made = await chain(keys={"SECOND_KEY": "sk-second-2"})
    (shown,) = await made.models.list_available_models()
    assert (shown.model_id, shown.usable) == ("m", True)
    assert [(p.name, p.usable, p.key_variable) for p in shown.providers] == [
        ("first", False, "FIRST_KEY"), ("second", True, "SECOND_KEY"), ("third", False, "THIRD_KEY"),
    ]  # fmt: skip
    every = await made.models.list_available_models(internal=True)
    assert [(one.model_id, one.internal, one.usable) for one in every] == [
        ("memory-summary-model", True, False), ("memory-evolve-model", True, False), ("m", False, True),
    ]  # fmt: skip
    assert "sk-second-2" not in json.dumps(to_jsonable(every))


async def test_a_test_asks_each_provider_and_says_what_came_back(chain):
    made = await chain("准备好了", Fails(status=401), keys={"FIRST_KEY": "a", "SECOND_KEY": "b"})
    first, second, third = await made.models.test("m")
    assert (first.text, first.error, first.usage) == ("准备好了", "", Usage(7, 3))
    assert (first.provider, first.provider_model_id) == ("first", "first/tiny")
    assert "HTTP 401: check the key in SECOND_KEY" in second.error
    assert third.error == "there is no key; set THIRD_KEY."
    assert made.counts == [1, 1, 0]
    every = [(trial.model_id, trial.provider) for trial in await made.models.test()]
    assert Counter(model_id for model_id, _ in every) == {**SHIPPED_OFFERS, "m": 3}
    assert list(dict.fromkeys(model_id for model_id, _ in every)) == [*SHIPPED_OFFERS, "m"]
    assert len(set(every)) == len(every)


async def test_a_test_asks_those_that_rest_too_and_wakes_them(chain):
    made = await failing(chain, times=3)
    made.servers[0].default = "back"
    assert [trial.error for trial in await made.models.test("m")] == ["", "", ""]
    assert (await made.complete()).provider == "first"


async def test_cancelling_a_call_ends_its_request(chain):
    made = await chain(Hangs())
    call = asyncio.ensure_future(made.complete())
    await soon(lambda: bool(made.servers[0].requests))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await soon(lambda: made.servers[0].requests[0].left_at is not None)
    assert made.counts == [1, 0, 0]
