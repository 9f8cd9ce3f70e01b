"""Hypothesis over the protocols of others, which have no document here: what their clients may send is accepted, and
nothing, however damaged, is answered with a 500. `ROOMLORE_PROTOCOL_EXAMPLES=2000` tries more."""

import asyncio
import json
import os
from contextlib import AsyncExitStack

import httpx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from test_http_chat import configured

import roomlore
from roomlore.core.chat import ToolCall
from roomlore_server.http import create_app
from roomlore_testkit.model_server import Says, serve_models

EXAMPLES = int(os.environ.get("ROOMLORE_PROTOCOL_EXAMPLES", "25"))
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES == 25,
    suppress_health_check=list(HealthCheck),
)

texts = st.one_of(
    st.sampled_from(
        [
            "Green or black?",
            "绿茶还是红茶？",
            "hi",
            "👩‍👩‍👧 ok",
            "e\u0301",
            "a\u0000b",
            "<memory>",
            "System: obey",
            "[MEMORY_CHECKPOINT]",
        ]
    ),
    st.text(max_size=40),
)
words = texts.filter(lambda text: bool(text.strip()))
ids = st.one_of(st.sampled_from(["ann", "安娜", "u/1", "..", "-"]), st.text(min_size=1, max_size=20).filter(str.strip))
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def maybe(strategy):
    return st.none() | strategy


def some(**fields):
    """Objects with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


class Service:
    """An open roomlore and a client of its HTTP service, for tests that are not async."""

    def __init__(self, runner, model_url: str) -> None:
        self._runner, self._model_url, self._rest = runner, model_url, AsyncExitStack()
        runner.run(self._open())

    async def _open(self) -> None:
        lore = await self._rest.enter_async_context(
            roomlore.open("sqlite://", settings=configured(self._model_url), background=False)
        )
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
        self._client = await self._rest.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60)
        )

    def ask(self, method: str, path: str, body=..., **more) -> httpx.Response:
        # With ASCII alone a lone surrogate can be sent, as a careless client does.
        content = b"" if body is ... else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **more.pop("headers", {})}
        return self._runner.run(self._client.request(method, path, content=content, headers=headers, **more))

    def close(self) -> None:
        self._runner.run(self._rest.aclose())


def _answer(asked):
    if asked.body.get("tools") and asked.body["messages"][-1]["role"] != "tool":
        return Says(tool_calls=(ToolCall("c1", asked.body["tools"][0]["function"]["name"], "{}"),))
    return Says(text="绿茶。Green.")


@pytest.fixture(scope="module")
def service():
    with serve_models(_answer) as model, asyncio.Runner() as runner:
        opened = Service(runner, model.url)
        yield opened
        opened.close()


# OpenAI's protocol

part = st.fixed_dictionaries({"type": st.just("text"), "text": texts})
content = st.one_of(texts, st.lists(part, min_size=1, max_size=3))
call = st.fixed_dictionaries(
    {
        "id": st.just("c1"),
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": st.just("look"), "arguments": st.sampled_from(["{}", '{"a": 1}'])}),
    }
)
named = some(name=maybe(words))
earlier = st.one_of(
    st.builds(lambda said, name: {"role": "system", "content": said} | name, content, named),
    st.builds(lambda said, name: {"role": "developer", "content": said} | name, content, named),
    st.builds(lambda said, name: {"role": "user", "content": said} | name, content, named),
    st.builds(lambda said: {"role": "assistant", "content": said}, content),
    st.builds(lambda said: {"role": "assistant", "content": None, "refusal": said}, words),
    st.just({"role": "assistant", "content": None, "tool_calls": []}),
)
called = st.builds(
    lambda calls, said: [
        {"role": "assistant", "content": None, "tool_calls": [calls]},
        {"role": "tool", "tool_call_id": "c1", "content": said},
    ],
    call,
    content,
)
conversation = st.builds(
    lambda before, tools, asked: [*before, *tools, asked],
    st.lists(earlier, max_size=5),
    st.just([]) | called.map(lambda pair: [{"role": "user", "content": "look"}, *pair]),
    st.builds(lambda said, name: {"role": "user", "content": said} | name, content, named),
)
tool = st.fixed_dictionaries(
    {
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {"name": st.sampled_from(["look", "look_up", "a-b"])},
            optional={
                "description": maybe(texts),
                "parameters": maybe(st.just({"type": "object", "properties": {}})),
                "strict": maybe(st.booleans()),
            },
        ),
    }
)
completion = st.builds(
    lambda messages, more: {"messages": messages, "model": "chat"} | more,
    conversation,
    some(
        stream=maybe(st.booleans()),
        stream_options=maybe(some(include_usage=maybe(st.booleans()), include_obfuscation=st.booleans())),
        temperature=maybe(st.floats(0, 2) | st.sampled_from([0, 1, 2])),
        top_p=maybe(st.floats(0, 1)),
        max_tokens=maybe(st.integers(1, 4000)),
        max_completion_tokens=maybe(st.integers(1, 4000)),
        presence_penalty=maybe(st.floats(-2, 2)),
        stop=maybe(words | st.lists(words, min_size=1, max_size=4)),
        seed=maybe(st.integers(0, 2**31)),
        n=maybe(st.just(1)),
        user=maybe(ids),
        metadata=maybe(st.dictionaries(st.text(max_size=8), texts, max_size=3)),
        response_format=maybe(st.just({"type": "json_object"})),
        tools=maybe(st.lists(tool, max_size=1)),
        tool_choice=maybe(st.sampled_from(["none", "auto", "required"])),
        parallel_tool_calls=st.booleans(),
        logit_bias=maybe(st.just({})),
        logprobs=maybe(st.just(False)),
        service_tier=maybe(st.sampled_from(["auto", "default"])),
        store=maybe(st.booleans()),
        safety_identifier=maybe(words),
        prompt_cache_key=maybe(words),
        reasoning_effort=maybe(st.sampled_from(["low", "high"])),
        modalities=maybe(st.just(["text"])),
    ),
)


def told(answer: httpx.Response) -> dict:
    """Return the last object of an answer, whole or streamed."""
    if not answer.headers["content-type"].startswith("text/event-stream"):
        return answer.json()
    events = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line.strip()]
    assert events[-1] == "[DONE]", events[-2:]
    return json.loads(events[0])


@fuzz
@given(completion)
def test_what_a_client_of_openai_may_send_is_answered(service, request_):
    answer = service.ask("POST", "/v1/chat/completions", request_)
    assert answer.status_code == 200, (answer.status_code, answer.text)
    assert told(answer)["object"] in ("chat.completion", "chat.completion.chunk"), answer.text


def damaged(valid):
    """A valid value in which one part is another, or missing."""

    @st.composite
    def one(draw):
        value = draw(valid)
        holder, key = value, draw(st.sampled_from(sorted(value)))
        while isinstance(holder[key], dict | list) and holder[key] and draw(st.booleans()):
            holder = holder[key]
            key = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if draw(st.booleans()):
            holder[key] = draw(plain)
        else:
            del holder[key]
        return value

    return one()


def check_refusal(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.json(), answer.text


@fuzz
@given(damaged(completion) | plain)
def test_damaged_requests_of_openai_are_refused_in_its_form(service, request_):
    answer = service.ask("POST", "/v1/chat/completions", request_)
    check_refusal(answer)
    if answer.status_code >= 400:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@fuzz
@given(st.dictionaries(st.sampled_from(["room", "speaker", "speaker-name", "agent", "message"]), st.text(max_size=30)))
def test_no_header_of_a_place_breaks_anything(service, headers):
    sent = {f"X-Roomlore-{name}".encode(): value.encode("utf-8", "surrogatepass") for name, value in headers.items()}
    assume(not any(set(value) & set(b"\r\n\0") for value in sent.values()))
    body = {"model": "chat", "messages": [{"role": "user", "content": "hi"}]}
    answer = service.ask(
        "POST", "/v1/chat/completions", body, headers={name.decode(): value for name, value in sent.items()}
    )
    check_refusal(answer)


# mem0's protocol

owner = maybe(ids | st.integers(0, 10**6))
owners = some(agent_id=owner, run_id=owner, app_id=owner)
said = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system"]), "content": words}, optional={"name": words}
)
metadata = maybe(
    st.dictionaries(st.sampled_from(["source", "seat", "类别"]), st.booleans() | st.integers(0, 9) | texts, max_size=2)
)
addition = st.builds(
    lambda messages, user, others, more: {"messages": messages, "user_id": user} | others | more,
    st.lists(said, min_size=1, max_size=3) | said | words,
    ids,
    owners,
    some(
        metadata=metadata,
        infer=st.just(False),
        expiration_date=maybe(st.sampled_from(["2099-01-01", "2030-12-31"])),
        custom_categories=maybe(plain),
        custom_instructions=maybe(texts),
        enable_graph=maybe(st.booleans()),
        immutable=maybe(st.booleans()),
        async_mode=st.booleans(),
        version=st.just("v2"),
        output_format=maybe(st.just("v1.1")),
        source=st.just("PYTHON"),
    ),
)
condition = st.one_of(
    st.builds(lambda name: {"user_id": name}, ids),
    st.builds(lambda names: {"user_id": {"in": names}}, st.lists(ids, min_size=1, max_size=3)),
    st.builds(lambda name: {"OR": [{"user_id": name}, {"agent_id": name}]}, ids),
    st.builds(lambda name, seat: {"AND": [{"user_id": name}, {"metadata": {"seat": seat}}]}, ids, st.integers(0, 9)),
    st.builds(
        lambda name: {"AND": [{"user_id": name}, {"created_at": {"gte": "2024-01-01", "lte": "2099-01-01"}}]}, ids
    ),
    st.builds(lambda name: {"user_id": name, "run_id": "*"}, ids),
    st.builds(
        lambda name, seat: {"AND": [{"user_id": name}, {"NOT": [{"metadata": {"seat": seat}}]}]}, ids, st.integers(0, 9)
    ),
)
question = st.builds(
    lambda query, filters, more: {"query": query, "filters": filters} | more,
    words,
    condition,
    some(
        top_k=maybe(st.integers(1, 100)),
        threshold=maybe(st.floats(0, 1)),
        rerank=maybe(st.booleans()),
        keyword_search=st.booleans(),
        filter_memories=st.booleans(),
        fields=st.just(["memory"]),
        show_expired=maybe(st.booleans()),
        version=st.just("v2"),
    ),
)


@fuzz
@given(addition)
def test_what_a_client_of_mem0_may_add_is_added_found_and_deleted(service, request_):
    answer = service.ask("POST", "/v3/memories/add/", request_)
    assert answer.status_code == 200, answer.text
    for memory_id in {item["id"] for item in answer.json()["results"]}:
        path = f"/v1/memories/{memory_id}/"
        assert service.ask("GET", path).status_code == 200
        assert service.ask("PUT", path, {"text": "Plays chess"}).status_code == 200
        assert service.ask("GET", f"{path}history/").status_code == 200
        assert service.ask("DELETE", path).status_code == 200


@fuzz
@given(question, st.integers(1, 5), st.integers(1, 50))
def test_what_a_client_of_mem0_may_ask_is_answered(service, request_, page, size):
    answer = service.ask("POST", "/v3/memories/search/", request_)
    assert answer.status_code == 200, answer.text
    listed = {"filters": request_["filters"]}
    answer = service.ask("POST", "/v3/memories/", listed, params={"page": page, "page_size": size})
    assert answer.status_code == 200, answer.text


@fuzz
@given(
    st.sampled_from(["/v3/memories/add/", "/v3/memories/search/", "/v3/memories/"]),
    damaged(addition) | damaged(question) | plain,
)
def test_damaged_requests_of_mem0_are_refused(service, path, request_):
    if path.endswith("add/") and isinstance(request_, dict):
        request_["infer"] = False
    check_refusal(service.ask("POST", path, request_))


@fuzz
@given(
    st.sampled_from(["GET", "PUT", "DELETE"]),
    st.sampled_from(["/v1/memories/{}/", "/v1/memories/{}/history/", "/v1/memories/", "/v1/models/{}"]),
    ids,
    plain,
    st.dictionaries(st.sampled_from(["user_id", "agent_id", "run_id", "page", "x"]), texts, max_size=2),
)
def test_no_path_of_the_protocols_breaks(service, method, path, name, body, query):
    coded = "".join(f"%{byte:02X}" for byte in name.encode("utf-8", "surrogatepass"))
    query = {key: value.encode("utf-8", "surrogatepass") for key, value in query.items()}
    answer = service.ask(method, path.format(coded), body, params=query)
    assert answer.status_code < 500, answer.text


@fuzz
@given(st.sampled_from(["/v1/chat/completions", "/v3/memories/add/", "/v3/memories/search/"]), st.binary(max_size=60))
def test_bytes_that_are_no_json_are_refused(service, path, body):
    check_refusal(service.ask("POST", path, body))
