"""OpenAI's protocol: its own client, with another base_url, on a real socket."""

import asyncio
from contextlib import asynccontextmanager
from itertools import product

import httpx
import openai
import pytest
from test_http_chat import CALL, WEATHER, configured, said, serving

import roomlore
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.model_server import Break, Fails, Says, serve_models


@asynccontextmanager
async def chatting(script=(), *, headers=None, url="sqlite://", settings=None, key="none", **more):
    """A scripted model, an open roomlore, and OpenAI's client of the service over both."""
    with serve_models(script, **more) as model:
        async with (
            roomlore.open(url, settings=configured(model.url, **(settings or {}))) as lore,
            serving(lore) as web,
            openai.AsyncOpenAI(
                base_url=f"{web.base_url}/v1", api_key=key, default_headers=headers, max_retries=0
            ) as client,
        ):
            yield model, lore, client


def user(text: str, **more) -> dict:
    return {"role": "user", "content": text, **more}


def bot(text: str, **more) -> dict:
    return {"role": "assistant", "content": text, **more}


async def ask(client, *messages, text: bool = True, **more):
    given = {"model": "chat", "messages": list(messages)} | more
    done = await client.chat.completions.create(**given)
    return done.choices[0].message.content if text else done


async def keyed(lore, *scopes: str) -> str:
    return (await lore.keys.create("app", scopes=scopes))[1]


# One without a key is admitted with any key, as long as none exists: `api_key="none"` is what clients must send.


async def test_a_whole_completion_has_the_protocols_form_and_is_stored():
    async with chatting(["Green tea."]) as (model, lore, client):
        done = await ask(
            client, user("Green or black?"), text=False, user="ann", extra_headers={"X-Roomlore-Room": "tea"}
        )
        assert done.choices[0].message.content == "Green tea."
        assert (done.object, done.model, done.choices[0].finish_reason) == ("chat.completion", "chat", "stop")
        assert (done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.total_tokens) == (7, 3, 10)
        assert await said(lore) == [("ann", "user", "Green or black?"), ("assistant", "assistant", "Green tea.")]
        assert done.id == (await lore.messages.page("tea"))[1].id
        await lore.context.feedback(done.model_extra["roomlore"]["context_id"], score=1)
    assert len(model.requests) == 1


async def test_a_stream_is_the_same_in_pieces():
    async with chatting([Says(pieces=["你好", "，\u2028", "ann"])]) as (_, lore, client):
        stream = await client.chat.completions.create(
            model="chat",
            messages=[user("你好")],
            user="ann",
            metadata={"room_id": "茶"},
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "你好，\u2028ann"
        assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
        assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 10)
        assert all(c.usage is None for c in chunks[:-1])
        assert {c.object for c in chunks} == {"chat.completion.chunk"}
        assert await said(lore, "茶") == [("ann", "user", "你好"), ("assistant", "assistant", "你好，\u2028ann")]


async def test_history_that_the_client_sends_is_stored_once_and_shown():
    async with chatting(["One.", "Two.", "三。"]) as (model, lore, client):
        talk = [user("first")]
        for text in ("second", "第三", "fourth"):
            answer = await ask(client, *talk, metadata={"room": "tea"})
            talk += [bot(answer), user(text)]
        stored = [(role, text) for _, role, text in await said(lore)]
        assert stored == [(one["role"], one["content"]) for one in talk[:-1]]
    last = model.requests[-1].prompt
    assert all(last.count(text) == 1 for text in ("first", "One.", "second", "Two.", "第三"))


async def test_a_history_from_elsewhere_is_taken_in_before_the_message():
    earlier = [user("I am allergic to nuts"), bot("Noted."), user("ok"), bot("Anything else?")]
    async with chatting(["No cake then.", "Sure."]) as (model, lore, client):
        await ask(client, *earlier, user("Cake?"), user="ann", metadata={"room": "tea"})
        stored = await said(lore)
        assert [text for *_, text in stored] == [*(one["content"] for one in earlier), "Cake?", "No cake then."]
        assert {sender for sender, role, _ in stored if role == "user"} == {"ann"}
        await ask(
            client, *earlier, user("Cake?"), bot("No cake then."), user("ok"), user="ann", metadata={"room": "tea"}
        )
        assert len(await said(lore)) == 8
    assert "allergic" in model.requests[0].prompt


async def test_what_the_client_leaves_out_is_added_by_memory():
    async with chatting(["Noted.", "Rooibos."]) as (model, lore, client):
        await ask(client, user("My favourite tea is rooibos"), user="ann")
        await ask(client, user("What is my favourite tea?"), user="ann")
        assert len(await said(lore, "key:none:ann")) == 4
    assert "rooibos" in model.requests[1].prompt


async def test_the_same_short_message_again_is_a_new_one_and_a_retry_is_not():
    async with chatting(["One.", "Two."]) as (model, lore, client):
        assert await ask(client, user("next"), user="ann") == "One."
        assert await ask(client, user("next"), user="ann") == "Two."
        again = {"X-Stainless-Retry-Count": "1"}
        assert await ask(client, user("next"), user="ann", extra_headers=again) == "Two."
        whole = [user("next"), bot("One."), user("next")]
        assert await ask(client, *whole, user="ann") == "Two."
        assert [text for *_, text in await said(lore, "key:none:ann")] == ["next", "One.", "next", "Two."]
    assert len(model.requests) == 2


async def test_an_id_of_the_callers_own_makes_a_request_repeatable():
    async with chatting(["One.", "Two."]) as (_, lore, client):
        for number, answer in (("m1", "One."), ("m1", "One."), ("m2", "Two.")):
            given = {"message_id": number, "room_id": "tea", "speaker_id": "ann", "speaker_name": "Ann"}
            assert await ask(client, user("next"), metadata=given) == answer
        assert [m.id for m in await lore.messages.page("tea") if m.role == "user"] == ["m1", "m2"]
        assert (await lore.messages.page("tea"))[0].sender_name == "Ann"


async def test_tools_are_called_by_the_client_between_two_requests():
    script = [Says(text="One moment.", tool_calls=[CALL]), "杭州：晴。", "Bring no umbrella."]
    async with chatting(script) as (model, lore, client):
        asked = [user("杭州天气?")]
        given = {"tools": [WEATHER], "metadata": {"room": "tea"}, "user": "ann"}
        first = await ask(client, *asked, text=False, tool_choice="auto", **given)
        message = first.choices[0].message
        assert (first.choices[0].finish_reason, message.content) == ("tool_calls", "One moment.")
        call = message.tool_calls[0]
        assert (call.id, call.function.name, call.function.arguments) == ("call-1", "weather", CALL.arguments)
        asked += [message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "晴"}]
        second = await ask(client, *asked, text=False, **given)
        assert second.choices[0].message.content == "杭州：晴。"
        assert second.usage.total_tokens == 10
        repeated = await ask(client, *asked, text=False, **given)
        assert (repeated.choices[0].message.content, repeated.id) == ("杭州：晴。", second.id)
        asked += [bot("杭州：晴。"), user("Umbrella?")]
        assert await ask(client, *asked, **given) == "Bring no umbrella."
        texts = [m.text for m in await lore.messages.page("tea") if m.role != "tool" and m.text]
        assert texts == ["杭州天气?", "One moment.\n\n杭州：晴。", "Umbrella?", "Bring no umbrella."]
    assert model.requests[0].body["tool_choice"] == "auto"
    assert [m["content"] for m in model.requests[1].body["messages"] if m["role"] == "tool"] == ["晴"]


async def test_tool_calls_arrive_in_a_stream_too():
    async with chatting([Says(tool_calls=[CALL])]) as (_, _lore, client):
        stream = await client.chat.completions.create(
            model="chat", messages=[user("?")], tools=[WEATHER], stream=True, user="ann"
        )
        chunks = [chunk async for chunk in stream]
    calls = [call for c in chunks for call in c.choices[0].delta.tool_calls or ()]
    assert [(c.index, c.id, c.type, c.function.arguments) for c in calls] == [(0, "call-1", "function", CALL.arguments)]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_instructions_options_and_the_agent_reach_the_model():
    async with chatting(["Hm."]) as (model, lore, client):
        await client.chat.completions.create(
            model="chat",
            messages=[
                {"role": "system", "content": "Be brief."},
                {"role": "developer", "content": "用中文。"},
                user("?"),
            ],
            temperature=0.5,
            max_completion_tokens=50,
            top_p=0.9,
            seed=7,
            store=True,
            stop=["\n"],
            user="ann",
            extra_headers={"X-Roomlore-Agent": "tea%20bot", "X-Roomlore-Room": "%E8%8C%B6"},
        )
        assert await said(lore, "茶") == [("ann", "user", "?"), ("tea bot", "assistant", "Hm.")]
    body = model.requests[0].body
    assert body["messages"][0]["content"].startswith("Be brief.\n\n用中文。")
    assert (body["temperature"], body["max_tokens"], body["top_p"], body["seed"]) == (0.5, 50, 0.9, 7)
    assert (body["stop"], "store" in body) == (["\n"], False)


async def test_people_of_one_room_are_told_apart():
    async with chatting(["Hello both."]) as (_, lore, client):
        talk = [user("Hi, I am Bob", name="Bob"), bot("Hi Bob."), user("And I am Ann", name="Ann")]
        await ask(client, *talk, metadata={"room": "tea"})
        stored = [(sender, text) for sender, role, text in await said(lore) if role == "user"]
        assert stored == [("Bob", "Hi, I am Bob"), ("Ann", "And I am Ann")]


async def test_a_request_without_a_room_has_one_of_its_own_for_key_and_speaker():
    async with chatting(default="Ok.") as (model, lore, client):
        ann, bob = (
            client.with_options(api_key=await keyed(lore, "write")),
            client.with_options(api_key=await keyed(lore, "write")),
        )
        await ask(ann, user("My secret is plum"), user="ann")
        await ask(ann, user("What is the secret?"), user="bob")
        await ask(bob, user("What is the secret?"), user="ann")
        rooms = [room.room_id for room in await lore.rooms.page()]
        assert len(rooms) == 3
        assert {room.kind for room in await lore.rooms.page()} == {"direct"}
    assert all("plum" not in asked.prompt for asked in model.requests[1:])


async def test_what_was_said_alone_does_not_come_up_in_a_group():
    async with chatting(default="Ok.") as (model, lore, client):
        alone = roomlore.Message(id="s1", room_id="ann-alone", sender_id="ann", text="Ann: I am leaving Acme")
        await lore.messages.add(alone)
        for scope in ("user:bob", "group:team"):
            await lore.memories.add(scope, "Ann is leaving Acme", sources=[roomlore.Source("ann-alone", "s1")])
            await lore.memories.add(scope, "Acme makes anvils")
        await ask(client, user("Is Ann leaving Acme?"), user="bob", metadata={"room": "team"})
    assert "anvils" in model.requests[0].prompt
    assert "Ann is leaving" not in model.requests[0].prompt


async def test_models_are_listed_without_internal_ones():
    async with chatting() as (_, _lore, client):
        listed = [model.id async for model in client.models.list()]
        one = await client.models.retrieve("chat")
        assert (listed, one.id, one.object) == (["chat"], "chat", "model")
        with pytest.raises(openai.NotFoundError) as caught:
            await client.models.retrieve("gpt-none")
    assert caught.value.code == "not_found"


# Errors in the protocol's form.


async def test_a_key_is_needed_and_its_scope():
    async with chatting(["Hm."]) as (_, lore, client):
        secret = await keyed(lore, "read")
        with pytest.raises(openai.AuthenticationError) as unknown:
            await ask(client, user("?"))
        assert (unknown.value.code, unknown.value.type) == ("invalid_api_key", "authentication_error")
        reader = client.with_options(api_key=secret)
        assert [model.id async for model in reader.models.list()] == ["chat"]
        with pytest.raises(openai.PermissionDeniedError) as forbidden:
            await ask(reader, user("?"))
    assert "write" in forbidden.value.message


CANNOT_BE_ANSWERED = [
    ({"messages": []}, "messages"),
    ({"messages": [bot("Hi")]}, "role user"),
    ({"messages": [user("?"), bot("Well")]}, "assistant's"),
    ({"messages": [{"role": "tool", "content": "x"}, user("?")]}, "tool_call_id"),
    ({"messages": [{"role": "owner", "content": "x"}]}, "owner"),
    ({"messages": [user([{"image_url": {"url": "x"}}])]}, "name its type"),
    ({"messages": [user(["x"])]}, "name its type"),
    ({"messages": [user([{"type": "text", "text": 3}])]}, "part"),
    ({"messages": [user("?")], "n": 2}, "n must"),
    ({"messages": [user("?")], "logprobs": True}, "logprobs"),
    ({"messages": [user("?")], "functions": [{"name": "f"}]}, "tools"),
    ({"messages": [user("?")], "temperature": 3}, "temperature"),
    ({"messages": [user("?")], "metadata": {"room_id": "a", "chat_id": "b"}}, "different rooms"),
]


async def test_a_request_that_cannot_be_answered_is_refused_and_nothing_is_stored():
    async with chatting(["Hm."]) as (model, lore, client):
        with all_cases() as case:
            for given, told in CANNOT_BE_ANSWERED:
                with case(given):
                    with pytest.raises(openai.BadRequestError) as caught:
                        await client.chat.completions.create(**{"model": "chat", "user": "ann"} | given)
                    assert told in caught.value.message
                    assert caught.value.type == "invalid_request_error"
                    assert await lore.rooms.page() == []
                    assert not model.requests


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
FILE = {"type": "file", "file": {"filename": "票.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}


async def test_pictures_and_files_are_noted_and_the_conversation_goes_on():
    talk = [user([{"type": "text", "text": "what is this?"}, PICTURE]), bot("a cat"), user([SOUND]), bot([PICTURE])]
    async with chatting(["Grey.", "Yes."]) as (model, lore, client):
        for more in ([user("and its colour?")], [user("and its colour?"), bot("Grey."), user([FILE, {"type": "new"}])]):
            await ask(client, *talk, *more, user="im")
        stored = await lore.messages.page((await lore.rooms.page())[0].room_id)
        told = [(one.text, [held["type"] for held in one.metadata.get("attachments", ())]) for one in stored]
        assert told == [
            ("what is this?", ["picture"]),
            ("a cat", []),
            ("", ["voice"]),
            ("", ["picture"]),
            ("and its colour?", []),
            ("Grey.", []),
            ("", ["file", "file"]),
            ("Yes.", []),
        ]
        assert stored[6].metadata["attachments"][0] == {"type": "file", "name": "票.pdf"}
        assert "base64" not in str(stored)
    for note in ("what is this? [picture]", "[voice message]", "[file: 票.pdf] [file]"):
        assert note in model.requests[1].prompt


async def test_an_unknown_model_is_named_with_those_there_are():
    async with chatting() as (_, lore, client):
        with pytest.raises(openai.NotFoundError, match="there are chat"):
            await ask(client, user("?"), model="gpt-4o", user="ann")
        assert await lore.rooms.page() == []


async def test_results_for_calls_that_nobody_made_are_refused():
    async with chatting() as (_, _lore, client):
        tail = [bot("", tool_calls=[{"id": "c9", "type": "function", "function": {"name": "f", "arguments": "{}"}}])]
        with pytest.raises(openai.BadRequestError, match="c9"):
            await ask(client, user("?"), *tail, {"role": "tool", "tool_call_id": "c9", "content": "x"}, user="ann")


async def test_a_model_that_fails_is_an_error_and_the_message_is_kept():
    async with chatting([Fails(status=500)] * 4, default=Fails(status=500)) as (_, lore, client):
        with pytest.raises(openai.InternalServerError) as caught:
            await ask(client, user("?"), user="ann")
        assert caught.value.type == "server_error"
        assert [text for *_, text in await said(lore, "key:none:ann")] == ["?"]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_first_completion_of_an_unreachable_model_is_refused_as_the_later_ones(stream):
    nowhere = {name: {"base_url": "http://127.0.0.1:1/v1"} for name in ("here", "closed")}
    async with chatting(settings={"providers": nowhere}) as (_, _lore, client):
        told = []
        for number in range(3):
            with pytest.raises(openai.InternalServerError) as caught:
                await ask(client, user(f"Question {number}?"), user="ann", stream=stream)
            told.append((caught.value.status_code, caught.value.response.headers["retry-after"]))
    assert told == [(503, "2"), (503, "15"), (503, "15")]


async def test_a_stream_that_breaks_off_ends_with_an_error():
    script = [Says(pieces=["Green ", "tea ", "is ", "best"], between=0.15, breaks=Break(after=3))]
    async with chatting(script) as (_, _lore, client):
        stream = await client.chat.completions.create(model="chat", messages=[user("?")], user="ann", stream=True)
        heard = [""]

        async def listen() -> None:
            async for chunk in stream:
                heard[0] += chunk.choices[0].delta.content or ""

        with pytest.raises(openai.APIError):
            await listen()
    assert heard[0].startswith("Green")


async def test_what_is_no_json_is_refused_in_the_protocols_form():
    async with chatting() as (_, _lore, client), httpx.AsyncClient() as web:
        sent = await web.post(
            f"{client.base_url}chat/completions", content=b"{", headers={"content-type": "application/json"}
        )
        assert (sent.status_code, sent.json()["error"]["type"]) == (400, "invalid_request_error")
        assert (await web.get(f"{client.base_url}chat/completions")).json()["error"]["code"] == "method_not_allowed"


async def test_two_at_once_of_one_speaker_are_both_answered_or_told_to_wait():
    async with chatting(default="Ok.") as (_, lore, client):
        texts = [f"question {number}" for number in range(6)]
        await asyncio.gather(*(ask(client, user(text), user="ann") for text in texts))
        stored = [text for _, role, text in await said(lore, "key:none:ann") if role == "user"]
    assert sorted(stored) == texts


async def test_a_request_that_cannot_be_answered_leaves_no_room_behind():
    wrongs = [{"model": "nix"}, {"max_tokens": 1_000_000}, {"tools": [WEATHER, WEATHER]}]
    async with chatting() as (model, lore, client):
        with all_cases() as case:
            for wrong, stream in product(wrongs, (False, True)):
                with case(wrong, stream):
                    with pytest.raises(openai.APIStatusError):
                        await ask(client, user("one"), bot("two"), user("three"), text=False, stream=stream, **wrong)
                    assert await lore.rooms.page() == []
                    assert not model.requests


async def test_without_any_model_no_room_is_left_behind():
    async with roomlore.open("sqlite://") as lore, serving(lore) as web:
        answer = await web.post("/v1/chat/completions", json={"messages": [user("hi")]})
        assert (answer.status_code, "no model to reply" in answer.json()["error"]["message"]) == (400, True)
        assert await lore.rooms.page() == []
