"""Tools in a reply: called here, called by the caller, by another process, and everything that goes wrong with them."""

import asyncio

import pytest

from reply_rig import asks, counted, gathered, kinds, last, replying, text_of
from roomlore import BadModelOutput, Conflict, InvalidInput, Role, Tool, ToolCall, ToolDone, ToolResult, ToolsWanted
from roomlore.core.replies.reply import REPLY
from roomlore_testkit.model_server import Says

LOOK = Tool("look", "Looks something up.", {"type": "object", "properties": {"q": {"type": "string"}}})


def wants(*calls: ToolCall, text: str = "") -> Says:
    return Says(text=text, tool_calls=calls)


def look(call_id: str = "c1", arguments: str = '{"q": "茶"}') -> ToolCall:
    return ToolCall(call_id, "look", arguments)


async def found(call: ToolCall) -> str:
    return f"found {call.arguments}"


async def test_tools_are_called_here_and_the_reply_goes_on():
    async with replying([wants(look(), text="Let me look."), "It is green."]) as (lore, server):
        events = await gathered(lore, asks(), tools=[LOOK], call_tool=found)
        assert kinds(events) == ["ReplyStarted", "ReplyText", "ToolsWanted", "ToolDone", "ReplyText", "Reply"]
        assert ToolDone(look(), 'found {"q": "茶"}') in events
        assert text_of(events) == last(events).text == "Let me look.\n\nIt is green."
        assert last(events).usage.input_tokens == 14
        function = {"name": "look", "description": LOOK.description, "parameters": LOOK.parameters}
        assert server.requests[0].body["tools"] == [{"type": "function", "function": function}]
        assert server.requests[1].body["messages"][-2:] == [
            {
                "role": "assistant",
                "content": "Let me look.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": "茶"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": 'found {"q": "茶"}'},
        ]
        _, calls, result, reply = await lore.messages.page("r")
        assert (calls.role, calls.has_tool_calls, calls.text) == (Role.ASSISTANT, True, "")
        assert calls.metadata[REPLY]["calls"] == [{"id": "c1", "name": "look", "arguments": '{"q": "茶"}'}]
        assert (result.role, result.sender_name, result.text) == (Role.TOOL, "look", 'found {"q": "茶"}')
        assert reply.text == last(events).text
        assert {m.turn_id for m in (calls, result, reply)} == {"q"}


async def test_the_caller_calls_tools_and_another_process_goes_on(sqlite_url):
    script = [wants(look("a"), look("b"), text="Looking."), "Green."]
    async with replying(script, url=sqlite_url) as (lore, server):
        events = await gathered(lore, asks(), tools=[LOOK])
        assert events[-2] == ToolsWanted((look("a"), look("b")))
        waiting = last(events)
        assert (waiting.finish_reason, waiting.tool_calls) == ("tool_calls", (look("a"), look("b")))
        assert waiting.text == "Looking."
        again = await gathered(lore, asks(), tools=[LOOK])
        assert kinds(again) == ["ToolsWanted", "Reply"]
        assert len(server.requests) == 1
        async with replying(["Green."], url=sqlite_url) as (other, second):
            half = await other.replies.reply(asks(), tools=[LOOK], tool_results=[ToolResult("b", "two")])
            assert half.tool_calls == (look("a"),)
            assert second.requests == []
            events = await gathered(other, asks(), tools=[LOOK], tool_results=[ToolResult("a", "one")])
            assert kinds(events) == ["ReplyStarted", "ReplyText", "Reply"]
            assert last(events).text == "Looking.\n\nGreen."
            assert [m.get("content") for m in second.requests[0].body["messages"][-3:]] == ["Looking.", "one", "two"]
        repeated = await lore.replies.reply(asks(), tools=[LOOK], tool_results=[ToolResult("a", "one")])
        assert repeated.repeated


async def test_the_same_results_may_be_handed_in_again_but_no_others():
    async with replying([wants(look("a"), look("b"))]) as (lore, _):
        await lore.replies.reply(asks(), tools=[LOOK])
        for _again in range(2):
            await lore.replies.reply(asks(), tools=[LOOK], tool_results=[ToolResult("a", "one")])
        with pytest.raises(Conflict, match="another result"):
            await lore.replies.reply(asks(), tools=[LOOK], tool_results=[ToolResult("a", "two")])
        with pytest.raises(InvalidInput, match="'c'"):
            await lore.replies.reply(asks(), tools=[LOOK], tool_results=[ToolResult("c", "one")])
        assert [m.text for m in await lore.messages.page("r") if m.role is Role.TOOL] == ["one"]


async def test_a_plain_function_will_do_as_a_tool():
    async with replying([wants(look()), "It is green."]) as (lore, server):
        reply = await lore.replies.reply(asks(), tools=[LOOK], call_tool=lambda call: f"plain {call.name}")
        assert reply.text == "It is green."
        assert server.requests[1].body["messages"][-1]["content"] == "plain look"


async def test_after_so_many_times_the_model_is_asked_without_tools():
    script = [wants(look(f"c{n}")) for n in range(3)]
    script[2] = "Enough."
    async with replying(script) as (lore, server):
        reply = await lore.replies.reply(asks(), tools=[LOOK], call_tool=found, max_tool_iterations=2)
        assert reply.text == "Enough."
        assert ["tools" in asked.body for asked in server.requests] == [True, True, False]


async def test_a_model_that_never_stops_asking_gets_an_error():
    async with replying(lambda _: wants(look("same"))) as (lore, server):
        with pytest.raises(BadModelOutput):
            await lore.replies.reply(asks(), tools=[LOOK], call_tool=found, max_tool_iterations=3)
        assert len(server.requests) == 4
        ids = [m["tool_call_id"] for m in server.requests[-1].body["messages"] if m["role"] == "tool"]
        assert len(set(ids)) == 3


async def test_what_a_tool_raises_is_told_to_the_model():
    async def broken(_: ToolCall) -> str:
        raise ValueError("no such leaf")

    async with replying([wants(look()), "Sorry."]) as (lore, server):
        assert (await lore.replies.reply(asks(), tools=[LOOK], call_tool=broken)).text == "Sorry."
        assert server.requests[1].body["messages"][-1]["content"] == "error: ValueError: no such leaf"


async def test_an_unknown_tool_is_told_to_the_model_and_the_caller_is_asked_for_the_others():
    async with replying([wants(ToolCall("c0", "fly", "{}"), look()), wants(ToolCall("c2", "fly", "{}")), "Done."]) as (
        lore,
        server,
    ):
        waiting = await lore.replies.reply(asks(), tools=[LOOK])
        assert waiting.tool_calls == (look(),)
        events = await gathered(lore, asks(), tools=[LOOK], tool_results=[ToolResult("c1", "leaf")])
        assert last(events).text == "Done."
        told = [m["content"] for m in server.requests[-1].body["messages"] if m["role"] == "tool"]
        unknown = "error: there is no tool 'fly'; there are look."
        assert told == [unknown, "leaf", unknown]


async def test_tools_are_called_at_once():
    both = asyncio.Barrier(2)

    async def meets(_: ToolCall) -> str:
        await asyncio.wait_for(both.wait(), 60)
        return "met"

    async with replying([wants(look("a"), look("b")), "Done."]) as (lore, _):
        assert (await lore.replies.reply(asks(), tools=[LOOK], call_tool=meets)).text == "Done."


async def test_endless_arguments_and_results_do_not_end_a_reply():
    long = wants(ToolCall("c1", "look", '"' + "茶" * 2000 + '"'), look("c2"))

    async def much(_: ToolCall) -> str:
        return "leaf " * 300_000

    async with replying([long, "Done."], max_metadata_chars=2048) as (lore, server):
        reply = await lore.replies.reply(asks(), tools=[LOOK], call_tool=much, model_context_window=300_000)
        assert reply.text == "Done."
        first, second = [m["content"] for m in server.requests[1].body["messages"] if m["role"] == "tool"]
        assert first == "error: the arguments are too long."
        assert second.endswith(" …")
        assert len(second) <= 100_000


@pytest.mark.parametrize(
    "call",
    [ToolCall("c", "look", "\x01" * 50_000), ToolCall("c", "x" * 300_000, "{}"), ToolCall("c" * 300_000, "look", "{}")],
)
async def test_a_call_of_any_size_can_be_stored(call):
    async with replying([wants(call), "Done."]) as (lore, server):
        waiting = await lore.replies.reply(asks(), tools=[LOOK], call_tool=found)
        assert waiting.text == "Done."
        (sent,) = server.requests[1].body["messages"][-2]["tool_calls"]
        assert len(str(sent)) < 1000


async def test_arguments_that_were_too_long_are_never_called_without(sqlite_url):
    """Not even by another process: the error is stored with the call."""
    long = wants(ToolCall("c1", "look", '"' + "茶" * 200_000 + '"'), look("c2"))
    async with replying([long], url=sqlite_url) as (lore, _):
        waiting = await lore.replies.reply(asks(), tools=[LOOK])
        assert [call.id for call in waiting.tool_calls] == ["c2"]
    async with replying(["Done."], url=sqlite_url) as (lore, _):
        assert (await lore.replies.reply(asks(), tools=[LOOK], call_tool=found)).text == "Done."


async def test_a_model_may_want_many_calls_but_not_any_number():
    called = []

    async def note(call: ToolCall) -> str:
        called.append(call.id)
        return "ok"

    async with replying([wants(*(look(f"c{n}") for n in range(300))), "Done."]) as (lore, _):
        assert (await lore.replies.reply(asks(), tools=[LOOK], call_tool=note)).text == "Done."
        assert len(called) == 128


async def test_a_text_too_long_to_be_stored_beside_calls_is_the_answer():
    async with replying([wants(look(), text="tea " * 400)], max_metadata_chars=4096, length_text="(cut)") as (lore, _):
        reply = await lore.replies.reply(asks(), tools=[LOOK], call_tool=found)
        assert (reply.text, reply.finish_reason) == ("tea " * 400 + "\n\n(cut)", "length")


async def test_calls_that_cannot_be_stored_at_all_are_the_models_fault():
    many = wants(*(look(f"c{n}") for n in range(100)), text="Let me see.")
    async with replying([many], max_metadata_chars=1024) as (lore, _):
        with pytest.raises(BadModelOutput, match="too much to be stored"):
            await lore.replies.reply(asks(), tools=[LOOK], call_tool=found)
        assert [m.text for m in await lore.messages.page("r")] == ["Green or black tea?", "Let me see."]


async def test_a_result_of_one_endless_character_can_be_stored_and_shown():
    async def accents(_: ToolCall) -> str:
        return "e" + "\u0301" * 1_200_000

    async with replying([wants(look()), "Done."]) as (lore, _):
        assert (await lore.replies.reply(asks(), tools=[LOOK], call_tool=accents)).text == "Done."


async def test_tools_in_a_session_leave_its_turns_whole():
    async with replying([wants(look()), "Green."]) as (lore, _):
        await lore.sessions.create_session("r", "ann")
        await lore.replies.reply(asks(), tools=[LOOK], call_tool=found)
        shown = await lore.sessions.query_context("r")
        assert shown.turns == 1
        assert [m["content"] for m in shown.messages] == ["Green or black tea?", 'found {"q": "茶"}', "Green."]


async def test_every_database_remembers_a_reply_and_its_tools(storage_url):
    async with replying([wants(look("a")), "Green.", "Black."], url=storage_url) as (lore, server):
        await lore.replies.reply(asks(), tools=[LOOK])
        reply = await lore.replies.reply(asks(), tools=[LOOK], tool_results=[ToolResult("a", "one")])
        assert (await lore.replies.reply(asks())).repeated
        await lore.messages.delete("r", reply.reply_id)
        assert (await lore.replies.reply(asks())).text == "Black."
        assert len(server.requests) == 3


async def test_a_reply_that_waits_for_tools_is_counted_as_such():
    async with replying([wants(look())]) as (lore, _):
        await lore.replies.reply(asks(), tools=[LOOK])
        assert counted(lore, 'roomlore_replies_total{result="tool_calls"}') == 1
