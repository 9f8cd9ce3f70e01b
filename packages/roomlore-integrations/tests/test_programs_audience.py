"""Programs that use roomlore as a library for a viewer: mem0's clients, a session of the OpenAI Agents
SDK, and sessions with their summaries."""

import pytest

from audience_rig import heard_in, remember
from roomlore import Message, Source
from roomlore.core.errors import NotFound
from roomlore_integrations.mem0 import AsyncMemory
from roomlore_integrations.openai_agents import RoomloreSession
from roomlore_testkit import START

PEOPLE = {"dm": "ann", "team": "ann bo", "square": "ann eve"}
SECRET, NUTS = "Ann wants another job", "Ann is allergic to nuts"


@pytest.fixture
async def lore():
    async with heard_in(PEOPLE, direct="dm") as opened:
        yield opened


async def statements(memory: AsyncMemory, **filters: str) -> set[str]:
    """Return what a client lists, which is what it finds."""
    listed = {one["memory"] for one in (await memory.get_all(filters=filters))["results"]}
    found = await memory.search("job nuts allergic another wants", filters=filters, threshold=0.0)
    assert listed == {one["memory"] for one in found["results"]}
    return listed


async def test_a_mem0_client_with_a_viewer_reads_what_that_viewer_may_know(lore):
    hidden, nuts = await remember(lore, SECRET, "dm"), await remember(lore, NUTS, "team")
    for viewer, known in {
        None: {SECRET, NUTS},
        "user:ann": {SECRET, NUTS},
        "room:team": {NUTS},
        "user:bo": {NUTS},
        "room:square": set(),
    }.items():
        memory = AsyncMemory(lore=lore, viewer=viewer)
        assert await statements(memory, user_id="ann") == known, viewer
        for memory_id, statement in ((hidden, SECRET), (nuts, NUTS)):
            seen = statement in known
            assert (await memory.get(memory_id) is not None) is seen
            assert bool(await memory.history(memory_id)) is seen


async def test_such_a_client_changes_no_hidden_memory(lore):
    hidden, memory = await remember(lore, SECRET, "dm"), AsyncMemory(lore=lore, viewer="room:team")
    for change in (memory.delete(hidden), memory.update(hidden, text="x"), memory.update(hidden, metadata={"a": 1})):
        with pytest.raises(NotFound):
            await change
    await memory.delete_all(user_id="ann")
    assert [one.statement for one in await lore.memories.page("user:ann")] == [SECRET]


async def test_a_history_for_a_viewer_tells_neither_earlier_words_nor_how_much_changed(lore):
    first = await remember(lore, SECRET, "dm")
    await remember(lore, f"{SECRET} soon", "dm")
    second = await lore.memories.update(first, statement="Ann moves 搬家")
    await lore.memories.share(second.memory_id, "room:team")
    rows = await AsyncMemory(lore=lore, viewer="room:team").history(second.memory_id)
    assert (rows[0]["event"], rows[0]["old_memory"], rows[0]["new_memory"]) == ("ADD", None, "Ann moves 搬家")
    assert [row["id"] for row in rows] == [f"{second.memory_id}#{place}" for place in range(1, len(rows) + 1)]
    assert SECRET not in str(rows)
    assert SECRET in str(await AsyncMemory(lore=lore, viewer="user:ann").history(second.memory_id))


async def test_what_was_only_shared_is_not_deleted_with_the_rest(lore):
    first = await remember(lore, SECRET, "dm")
    await lore.memories.share(first, "room:team")
    await AsyncMemory(lore=lore, viewer="room:team").delete_all(user_id="ann")
    assert (await lore.memories.get(first)).status == "active"


async def test_a_filter_by_an_agent_alone_shows_a_viewer_nothing_of_other_users(lore):
    everything = AsyncMemory(lore=lore)
    await everything.add("I want another job", user_id="ann", agent_id="bot", infer=False)
    await everything.add("I am allergic to nuts", user_id="bo", agent_id="bot", infer=False)
    await everything.add("I am a bot", agent_id="bot", infer=False)
    assert len(await statements(everything, agent_id="bot")) == 3
    assert "I want another job" not in await statements(AsyncMemory(lore=lore, viewer="user:bo"), agent_id="bot")
    assert "I am allergic to nuts" in await statements(AsyncMemory(lore=lore, viewer="user:bo"), agent_id="bot")


async def session_of_team(secrets: int) -> list:
    """Return all that a session of the team shows, in a store with so many secrets elsewhere."""
    async with heard_in(PEOPLE, direct="dm") as lore:
        for number in range(secrets):
            said = Message(id=f"s{number}", room_id="dm", sender_id="ann", text=f"{SECRET} {number}", sent_at=START)
            await lore.messages.add(said)
            await remember(lore, f"{SECRET} {number}", "dm")
            await lore.memories.add("agent:bot", f"{SECRET} {number}", sources=[Source("dm", said.id)])
        if secrets:
            await lore.sessions.write_turn("dm", "ann", "bot", SECRET, f"{SECRET}?", turn_id="d")
            await lore.sessions.summarise("dm")
        for number in range(6):
            await lore.sessions.write_turn(
                "team", "bo", "bot", f"What is known of Ann {number}?", "x", turn_id=f"t{number}"
            )
        items = await RoomloreSession("team", lore, fit_window=True, model_context_window=400).get_items()
        summary = await lore.sessions.summarise("team")
        context = await lore.sessions.query_context("team", "Does Ann want another job?")
        return [items, summary and summary.summary, context.messages, context.estimated_tokens]


async def test_sessions_and_their_summaries_bring_no_talk_of_another_room_along():
    without, with_secrets = await session_of_team(0), await session_of_team(6)
    assert without == with_secrets
    assert SECRET not in str(with_secrets)
