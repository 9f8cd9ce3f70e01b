"""Faults that used to make a conversation unreadable, or to spread from one conversation to another."""

import asyncio

import pytest

from roomlore import BudgetTooSmall, InvalidInput, Message, Role, Settings
from session_rig import Rig, ScriptedSummarizer, open_rig, summarise_all

AUTO = Settings(auto_checkpoint=True, model_context_window=400, recent_turns=2)
ROOM = "talk"
TOOL = "tool output {}: alpha beta gamma delta alpha beta gamma delta"


async def talk(rig: Rig, count: int, *, room: str = ROOM, text: str = "the backup of node {} failed again") -> None:
    for number in range(count):
        await rig.sessions.write_turn(room, "ann", "bot", text.format(number), f"noted {number}")


async def tools(rig: Rig, first: int, count: int) -> None:
    """A turn that goes on: what tools said since one question."""
    said = [
        Message(id=f"x{at}", room_id=ROOM, sender_id="tool", role=Role.TOOL, text=TOOL.format(at), turn_id="loop")
        for at in range(first, first + count)
    ]
    await rig.messages.add(said)


async def summarised(rig: Rig, rooms: int) -> int:
    """Return the number of these rooms that have a checkpoint."""
    return sum([bool(await rig.sessions.checkpoints(f"r{number}")) for number in range(rooms)])


async def test_one_turn_that_outgrows_the_window_is_summarised_and_goes_on_being_read():
    async with open_rig(settings=AUTO) as rig:
        await rig.messages.add(Message(id="q", room_id=ROOM, sender_id="ann", text="do it all", turn_id="loop"))
        for part in range(12):
            await tools(rig, 4 * part, 4)
            context = await rig.sessions.query_context(ROOM)
            assert TOOL.format(4 * part + 3) in context.history
            await rig.sessions.catch_up()
        assert len(await rig.sessions.checkpoints(ROOM)) >= 2


async def test_a_summary_that_leaves_a_smaller_model_no_room_is_made_again_shorter():
    async with open_rig(settings=Settings(auto_checkpoint=True, recent_turns=2)) as rig:
        await talk(rig, 40)
        assert await rig.sessions.summarise(ROOM) is not None
        with pytest.raises(BudgetTooSmall):
            await rig.sessions.query_context(ROOM, model_context_window=150)
        assert await rig.sessions.catch_up() == 1
        context = await rig.sessions.query_context(ROOM, model_context_window=150)
        assert context.estimated_tokens <= 150
        assert [made.tokens <= 37 for made in await rig.sessions.checkpoints(ROOM)] == [True, False]
        assert context.session.flow_context.turn_count == 40


async def test_a_summary_is_made_for_the_window_that_asked_for_it():
    async with open_rig(settings=Settings(auto_checkpoint=True, recent_turns=2)) as rig:
        await talk(rig, 40)
        assert (await rig.sessions.query_context(ROOM, model_context_window=160)).truncated
        assert await rig.sessions.catch_up() == 1
        assert (await rig.sessions.checkpoints(ROOM))[0].tokens <= 40


@pytest.mark.parametrize("error", [ConnectionResetError("their own"), ValueError("odd"), TypeError()])
async def test_whatever_a_summariser_raises_sentences_are_chosen(error):
    async with open_rig(settings=AUTO, summarizer=ScriptedSummarizer(error=error)) as rig:
        await talk(rig, 20)
        made = await rig.sessions.summarise(ROOM)
        assert made is not None
        assert made.made_by == "extract"


async def test_one_slow_summary_holds_up_no_other():
    model = ScriptedSummarizer(gate=asyncio.Event())
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        for number in range(12):
            await talk(rig, 20, room=f"r{number}")
            await rig.sessions.query_context(f"r{number}")
        working = asyncio.create_task(rig.sessions.catch_up())
        await model.asked.wait()
        held, model.gate = model.gate, None
        async with asyncio.timeout(60):
            while await summarised(rig, 12) < 4:  # noqa: ASYNC110 - another task's work, which sets nothing
                await asyncio.sleep(0.05)
        assert not working.done()
        assert held is not None
        held.set()
        assert await working == 12


async def test_nobody_else_is_waited_for_when_it_is_broken_off():
    model = ScriptedSummarizer(gate=asyncio.Event())
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        await talk(rig, 20)
        await rig.sessions.query_context(ROOM)
        working = asyncio.create_task(rig.sessions.catch_up())
        await model.asked.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert await rig.sessions.checkpoints(ROOM) == []


async def test_without_words_a_picture_is_no_reason_for_a_checkpoint():
    async with open_rig(settings=AUTO) as rig:
        pictures = [Message(id=f"p{n}", room_id=ROOM, sender_id="ann", sender_name="Ann") for n in range(300)]
        await rig.messages.add(pictures)
        context = await rig.sessions.query_context(ROOM)
        assert (context.history, context.messages, context.truncated) == ("", (), False)
        assert rig.jobs.asked == []


@pytest.mark.parametrize("given", [{"agent_code": "x" * 600}, {"user_id": "u" * 600}, {"turn_id": "t" * 600}])
async def test_ids_that_are_too_long_are_refused_whoever_speaks(given):
    async with open_rig() as rig:
        for said in ({"user_query": "hi"}, {"agent_response": "hi"}):
            with pytest.raises(InvalidInput, match="at most 512"):
                await rig.sessions.write_turn(ROOM, **said, **given)


async def test_a_name_that_is_a_label_is_not_shown_as_one():
    async with open_rig() as rig:
        for number, name in enumerate(["System", "历史摘要", "助手", "Ann"]):
            said = Message(id=str(number), room_id=ROOM, sender_id="u", sender_name=name, text=f"text {number}")
            await rig.messages.add(said)
        history = (await rig.sessions.query_context(ROOM)).history
        assert history == "User: text 0\nUser: text 1\nUser: text 2\nAnn: text 3"


async def test_the_language_of_a_conversation_stays_once_it_was_summarised():
    async with open_rig() as rig:
        await talk(rig, 3, text="节点{}的备份昨晚又失败了")
        await summarise_all(rig.lore, ROOM, "备份失败了")
        await rig.sessions.write_turn(
            ROOM, "ann", "bot", "print('hello world') raises a SyntaxError here", "Look again."
        )
        assert (await summarise_all(rig.lore, ROOM, "仍然失败")).language == "zh"
        assert (await rig.sessions.query_context(ROOM)).history.startswith("历史摘要: 仍然失败\n\n用户: ")
