"""Nothing falls in the gap: what a checkpoint covers, who wins a race, and what a late summary may not do."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import roomlore
from roomlore import Checkpoint, Conflict, InvalidInput, NotFound, Settings, StorageUnavailable
from roomlore.adapters.tokens import EncodingTokens
from roomlore_testkit import FrozenClock, InMemorySessionCache
from session_rig import Rig, ScriptedSummarizer, open_rig

ROOM = "conv-123"
SMALL = Settings(model_context_window=200, recent_turns=2)
BOTH_WAYS = r"covers_through.*context="
count = EncodingTokens().count


@pytest.fixture
async def rig(storage_url: str) -> AsyncIterator[Rig]:
    async with open_rig(storage_url, settings=SMALL) as opened:
        yield opened


@pytest.fixture
async def quick() -> AsyncIterator[Rig]:
    async with open_rig(settings=SMALL) as opened:
        yield opened


async def talk(rig: Rig, *numbers: int) -> None:
    for number in numbers:
        text = f"question {number}: how long did the backup of node {number} take?"
        await rig.sessions.write_turn(ROOM, "ann", "bot", text, f"answer {number}", turn_id=f"t{number}")


async def shown(rig: Rig, **options) -> list[int]:
    context = await rig.sessions.query_context(ROOM, **options)
    assert not context.truncated
    return [int(one["content"].split()[1]) for one in context.messages if one["content"].startswith("answer")]


async def asked(rig: Rig) -> roomlore.SessionContext:
    """A context that asks for a checkpoint."""
    context = await rig.sessions.query_context(ROOM, token_threshold_ratio=0.01)
    assert context.should_checkpoint_summary
    return context


async def test_what_a_checkpoint_says_of_itself(rig):
    await talk(rig, *range(5))
    made = await rig.sessions.checkpoint(ROOM, "  Summary: five backups were quick \n", 2, "t3-answer")
    assert made.summary == "five backups were quick"
    assert (made.number, made.kind, made.made_by) == (1, "summary", "caller")
    assert (made.covers_arrival, made.covers_through, made.turns) == (8, "t3-answer", 4)
    assert made.tokens == count([made.summary])[0]
    assert (made.recent_turns, made.language, made.created_at) == (2, "en", rig.clock.now())
    assert await rig.sessions.checkpoints(ROOM) == [made]
    assert (await rig.sessions.get_session(ROOM)).flow_context.turn_count == 5


async def test_the_flow_of_the_seed(rig):
    """The summary is made while turns are written, and nobody says what it covers."""
    await rig.sessions.create_session(ROOM, "user-456")
    making: list[asyncio.Task[Checkpoint]] = []

    async def summarise(history: str, number: int) -> Checkpoint:
        await asyncio.sleep(0.02)
        assert f"question {number - 1}" in history
        return await rig.sessions.checkpoint(ROOM, f"summary of all before {number}", 2)

    for number in range(12):
        context = await rig.sessions.query_context(ROOM, f"question {number}")
        if context.should_checkpoint_summary and not making:
            making.append(asyncio.create_task(summarise(context.full_history, number)))
            first = number
        await talk(rig, number)
    made = await making[0]
    assert (made.covers_through, made.coverage_assumed) == (f"t{first - 1}-answer", True)
    assert set(range(first, 12)) <= set(await shown(rig, model_context_window=16_000))


async def test_an_untold_summary_is_taken_for_one_of_the_first_context_that_asked(rig):
    await talk(rig, 0, 1)
    await rig.sessions.query_context(ROOM, model_context_window=16_000)
    await talk(rig, 2)
    await asked(rig)
    await talk(rig, 3)
    await asked(rig)
    first = await rig.sessions.checkpoint(ROOM, "of 0 to 2")
    assert (first.covers_through, first.coverage_assumed) == ("t2-answer", True)
    assert await rig.sessions.checkpoints(ROOM) == [first]
    await rig.sessions.query_context(ROOM, model_context_window=16_000)
    with pytest.raises(Conflict, match=BOTH_WAYS):
        await rig.sessions.checkpoint(ROOM, "of 0 to 3, late")
    await talk(rig, 4)
    await asked(rig)
    assert (await rig.sessions.checkpoint(ROOM, "of all")).covers_through == "t4-answer"


async def test_contexts_say_that_coverage_is_assumed_until_it_is_told(quick):
    await talk(quick, 0, 1)
    assert not (await asked(quick)).coverage_assumed
    await quick.sessions.checkpoint(ROOM, "of 0 and 1")
    for summary in ("again untold", "told"):
        await talk(quick, 2)
        context = await asked(quick)
        assert (context.coverage_assumed, await assumed(quick)) == (True, True)
        await quick.sessions.checkpoint(ROOM, summary, context=context if summary == "told" else None)
    assert not await assumed(quick)
    await talk(quick, 3)
    await asked(quick)
    await quick.sessions.checkpoint(ROOM, "untold")
    await talk(quick, 4)
    assert not (await quick.sessions.summarise(ROOM)).coverage_assumed
    assert not await assumed(quick)


async def assumed(rig: Rig) -> bool:
    return (await rig.sessions.preview_context(ROOM)).coverage_assumed


async def test_which_context_asked_is_known_to_every_process_and_after_a_restart(storage_url):
    async with open_rig(storage_url, settings=SMALL) as one, open_rig(storage_url, settings=SMALL) as other:
        await talk(one, 0, 1)
        await asked(one)
        await talk(other, 2)
        await asked(other)
        await one.sessions.patch_state(ROOM, {"global_state": {"shared": {"a": 1}}})
    async with open_rig(storage_url, settings=SMALL) as later:
        value = await later.sessions.get_session(ROOM)
        assert (await later.sessions.checkpoint(ROOM, "of 0 and 1")).covers_through == "t1-answer"
    assert (value.global_state.shared, value.extra) == ({"a": 1}, {}), "what roomlore notes is no state of the callers"


async def test_only_the_first_context_that_asks_is_written_down(quick):
    await talk(quick, 0, 1)
    for context, writes in ((quick.sessions.preview_context, 0), (quick.sessions.query_context, 1)):
        for _ in range(2):
            quick.storage.calls.clear()
            assert (await context(ROOM, token_threshold_ratio=0.01)).should_checkpoint_summary
            assert quick.storage.calls.count("sessions.save") == writes
            writes = 0
    before = (await quick.sessions.get_session(ROOM)).meta.updated_at
    quick.clock.advance(60)
    await quick.sessions.reset(ROOM)
    await talk(quick, 2)
    quick.clock.advance(60)
    await asked(quick)
    assert (await quick.sessions.get_session(ROOM)).meta.updated_at == before + 60, "a context changes no conversation"


async def test_a_context_is_given_although_it_could_not_be_written_down(quick):
    await talk(quick, 0, 1)
    quick.storage.fail("sessions.save")
    await asked(quick)
    quick.storage.heal()
    with pytest.raises(InvalidInput, match=BOTH_WAYS):
        await quick.sessions.checkpoint(ROOM, "of 0 and 1")


async def test_a_room_that_never_was_a_session_asks_too(quick):
    await quick.messages.add(roomlore.Message(id="m", room_id=ROOM, sender_id="ann", text="a remark"))
    await asked(quick)
    assert (await quick.sessions.checkpoint(ROOM, "a remark")).covers_through == "m"


async def test_a_summary_of_what_a_reset_put_away_is_refused(quick):
    await talk(quick, 0, 1)
    context = await asked(quick)
    await quick.sessions.reset(ROOM)
    await talk(quick, 2)
    for given in ({}, {"covers_through": context.covers_through}, {"expected_checkpoint": ""}, {"context": context}):
        with pytest.raises(Conflict):
            await quick.sessions.checkpoint(ROOM, "of the old conversation", **given)
    assert await shown(quick) == [2]


async def test_a_summary_that_roomlore_made_meanwhile_wins_over_a_late_one(quick):
    await talk(quick, 0, 1)
    context = await asked(quick)
    await talk(quick, 2)
    assert await quick.sessions.summarise(ROOM) is not None
    await talk(quick, 3, 4, 5, 6)
    for given in ({}, {"context": context}, {"context": context.checkpoint_token}):
        with pytest.raises(Conflict):
            await quick.sessions.checkpoint(ROOM, "of 0 and 1", **given)
    assert await shown(quick, model_context_window=16_000) == [3, 4, 5, 6]


async def test_if_no_context_asked_nobody_knows_what_was_summarised(rig):
    await talk(rig, *range(5))
    await rig.sessions.query_window(ROOM, 16_000)
    await rig.sessions.query_context(ROOM, model_context_window=16_000)
    await rig.sessions.preview_context(ROOM, token_threshold_ratio=0.01)
    for given in ({}, {"expected_checkpoint": ""}):
        with pytest.raises(InvalidInput, match=BOTH_WAYS):
            await rig.sessions.checkpoint(ROOM, "of something", 0, **given)
    assert await rig.sessions.checkpoints(ROOM) == []


@pytest.mark.parametrize("how", ["context", "token", "preview"])
async def test_the_context_of_a_summary_tells_what_it_covers(rig, how):
    await talk(rig, *range(5))
    look = rig.sessions.preview_context if how == "preview" else rig.sessions.query_context
    context = await look(ROOM, model_context_window=16_000)
    await talk(rig, 5, 6)
    await asked(rig)
    given = context.checkpoint_token if how == "token" else context
    made = await rig.sessions.checkpoint(ROOM, "of 0 to 4", 0, context=given)
    assert (made.covers_through, made.coverage_assumed) == ("t4-answer", False)
    assert await shown(rig, recent_turns=0) == [5, 6]
    with pytest.raises(Conflict, match="moved on"):
        await rig.sessions.checkpoint(ROOM, "again", context=given)


async def test_the_beginning_of_a_context(rig):
    await talk(rig, *range(5))
    context = await rig.sessions.query_context(ROOM, model_context_window=16_000)
    await talk(rig, 5)
    with pytest.raises(InvalidInput, match="after the context"):
        await rig.sessions.checkpoint(ROOM, "of more", 0, "t5-query", context)
    made = await rig.sessions.checkpoint(ROOM, "of 0 to 2", 0, "t2-answer", context)
    assert (made.covers_through, made.coverage_assumed) == ("t2-answer", False)
    assert await shown(rig, recent_turns=0) == [3, 4, 5]


async def test_a_summary_of_a_truncated_history_is_refused(quick):
    await talk(quick, *range(12))
    context = await asked(quick)
    assert context.truncated
    for given in ({}, {"context": context}, {"context": context.checkpoint_token}):
        with pytest.raises(InvalidInput, match=r"full_history.*covers_through"):
            await quick.sessions.checkpoint(ROOM, "of the end", **given)
    made = await quick.sessions.checkpoint(ROOM, "of all", 0, context.covers_through, context)
    assert (made.covers_through, made.coverage_assumed) == ("t11-answer", False)


@pytest.mark.parametrize("change", ["delete the first", "delete the last", "edit", "forget"])
@pytest.mark.parametrize("told", ["nothing", "context", "token", "beginning", "last message"])
async def test_a_summary_of_what_was_removed_meanwhile_is_refused(quick, told, change):
    await talk(quick, 0, 1)
    bo = roomlore.Message(id="bo", room_id=ROOM, sender_id="bo", text="my number is 555", turn_id="t1")
    await quick.messages.add(bo)
    await talk(quick, 2)
    context = await asked(quick)
    await talk(quick, 3)
    if change == "forget":
        await quick.lore.privacy.forget("bo")
    elif change == "edit":
        await quick.messages.edit(ROOM, "t1-query", text="something else")
    else:
        await quick.messages.delete(ROOM, "t0-query" if change == "delete the first" else "t2-answer")
    given = {
        "nothing": {},
        "context": {"context": context},
        "token": {"context": context.checkpoint_token},
        "beginning": {"context": context, "covers_through": "t1-answer"},
        "last message": {"covers_through": "t1-answer" if change == "delete the last" else "t2-answer"},
    }[told]
    with pytest.raises(Conflict, match="edited or deleted"):
        await quick.sessions.checkpoint(ROOM, "my number is 555", **given)
    await asked(quick)
    if told in ("nothing", "last message"):
        with pytest.raises(Conflict, match=BOTH_WAYS):
            await quick.sessions.checkpoint(ROOM, "of the first context again", **given)
        quick.clock.advance(601)
        await asked(quick)
        made = await quick.sessions.checkpoint(ROOM, "of what is there", **given)
        assert made.coverage_assumed == (told == "nothing")
    made = await quick.sessions.checkpoint(ROOM, "of what is there", context=await asked(quick))
    assert made.covers_through == "t3-answer"


async def test_a_summary_of_a_summary_that_was_forgotten_is_refused(quick):
    await quick.messages.add(roomlore.Message(id="bo", room_id=ROOM, sender_id="bo", text="my number is 555"))
    await talk(quick, 0)
    await quick.sessions.checkpoint(ROOM, "Bo's number is 555", 0, "t0-answer")
    await talk(quick, 1)
    context = await asked(quick)
    await quick.lore.privacy.forget("bo")
    for given in ({}, {"context": context}, {"context": context.checkpoint_token}):
        with pytest.raises(Conflict):
            await quick.sessions.checkpoint(ROOM, "Bo's number is 555, and more", **given)


async def test_ten_minutes_after_a_context_whose_messages_changed_another_takes_its_place(quick):
    await talk(quick, 0, 1)
    await asked(quick)
    await quick.messages.delete(ROOM, "t0-query")
    quick.clock.advance(599)
    await asked(quick)
    with pytest.raises(Conflict, match=BOTH_WAYS):
        await quick.sessions.checkpoint(ROOM, "of 0 and 1")
    quick.clock.advance(2)
    await talk(quick, 2)
    await asked(quick)
    assert (await quick.sessions.checkpoint(ROOM, "of what is there")).covers_through == "t2-answer"


@pytest.mark.parametrize(
    ("given", "says"),
    [("t1-answer", "expected_checkpoint"), ("", "checkpoint_token"), (7, "checkpoint_token"), ("other", "'other'")],
)
async def test_what_is_no_context_of_the_conversation(quick, given, says):
    await talk(quick, 0, 1)
    if given == "other":
        await quick.sessions.create_session("other")
        given = await quick.sessions.query_context("other")
    with pytest.raises(InvalidInput, match=says):
        await quick.sessions.checkpoint(ROOM, "s", context=given)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("recent", [0, 1, 30])
async def test_covered_turns_stay_while_coverage_is_assumed(recent, cached):
    """As many as fit into half of the threshold, newest first; they are told again in the next summary."""
    cache = InMemorySessionCache(FrozenClock()) if cached else None
    settings = Settings(model_context_window=1_600, recent_turns=1)
    model = ScriptedSummarizer()
    async with open_rig(settings=settings, cache=cache, summarizer=model) as rig:
        await talk(rig, *range(40))
        await asked(rig)
        await rig.sessions.checkpoint(ROOM, "of 0 to 39", 0)
        await talk(rig, 40)
        for _ in range(2):
            context = await rig.sessions.query_context(ROOM, recent_turns=recent)
            numbers = [int(one[1:-7]) for one in context.message_ids if one.endswith("answer")]
            assert numbers == list(range(numbers[0], 41))
            kept = [line for line in context.history.split("\n") if line.startswith(("User", "bot", "Assistant"))][:-2]
            assert recent == 30 or 600 - 40 < count(["\n".join(kept)])[0] <= 600
            assert not context.truncated
        first = 41 - 30 if recent == 30 else numbers[0]
        assert numbers[0] == first
        told = await rig.sessions.query_context(ROOM)
        assert told.full_history == (await rig.sessions.preview_context(ROOM, recent_turns=0)).history
        assert told.covers_through == "t40-answer"
        assert (await rig.sessions.summarise(ROOM)).turns == 41
        assert told.full_history.endswith(str(model.calls[-1]["conversation"]))
        assert await shown(rig, recent_turns=0) == []


async def test_never_fewer_than_the_recent_turns(rig):
    await talk(rig, *range(12))
    await rig.sessions.checkpoint(ROOM, "all", 0, "t11-answer")
    for turns in (0, 1, 2, 5, 11, 12, 50):
        assert (
            await shown(rig, recent_turns=turns, model_context_window=16_000) == list(range(12))[12 - min(turns, 12) :]
        )


async def test_a_turn_that_is_covered_in_part_is_shown_whole(rig):
    await talk(rig, 0, 1)
    await rig.sessions.write_turn(ROOM, "ann", user_query="question 2", turn_id="t2")
    await rig.sessions.checkpoint(ROOM, "up to the question", 0, "t2-query")
    await rig.sessions.write_turn(ROOM, agent_code="bot", agent_response="answer 2", turn_id="t2")
    context = await rig.sessions.query_context(ROOM, recent_turns=0)
    assert [one["content"] for one in context.messages[1:]] == ["question 2", "answer 2"]
    assert context.session.flow_context.turn_count == 3
    await talk(rig, *range(3, 30))
    context = await rig.sessions.query_context(ROOM, recent_turns=0, model_context_window=16_000)
    assert context.turns == 28
    assert context.session.flow_context.turn_count == 30


async def test_a_long_turn_that_is_covered_in_part_is_shown_whole(rig):
    """However far back it began, and whatever was said since."""
    await talk(rig, 0)
    said = [roomlore.Role.USER, *[roomlore.Role.TOOL] * 12, roomlore.Role.ASSISTANT]
    await rig.messages.add(
        [
            roomlore.Message(id=str(n), room_id=ROOM, sender_id="x", role=role, text=f"{n}")
            for n, role in enumerate(said)
        ]
    )
    await rig.sessions.checkpoint(ROOM, "all but the answer", 0, "12")
    await talk(rig, *range(1, 20))
    context = await rig.sessions.query_context(ROOM, recent_turns=0, model_context_window=16_000)
    assert [one["content"] for one in context.messages[1:15]] == [str(n) for n in range(14)]
    assert (context.turns, context.session.flow_context.turn_count) == (20, 21)


async def test_turns_that_come_between_each_other_are_whole_or_not_there(storage_url):
    """The answer of an old turn that stands among newer ones is not taken for a turn of its own."""
    clock = FrozenClock()
    cache = InMemorySessionCache(clock)
    async with open_rig(storage_url, settings=SMALL, cache=cache, clock=clock) as rig:
        await rig.sessions.write_turn(ROOM, "ann", user_query="first?", turn_id="t")
        await rig.messages.add(roomlore.Message(id="between", room_id=ROOM, sender_id="bob", text="hello all"))
        await rig.sessions.write_turn(ROOM, agent_code="bot", agent_response="first!", turn_id="t")
        await rig.sessions.checkpoint(ROOM, "a question and a greeting", 0, "t-answer")
        await rig.sessions.write_turn(ROOM, agent_code="bot", agent_response="hello bob", turn_id="u")
        remembered = await rig.sessions.query_context(ROOM)
        assert remembered.message_ids == ("between", "u-answer")
        assert remembered.session.flow_context.turn_count == 3
        cache.wipe()
        assert await rig.sessions.query_context(ROOM) == remembered


async def test_a_long_talk_after_a_checkpoint_is_read_from_the_cache_alone():
    clock = FrozenClock()
    async with open_rig(settings=SMALL, cache=InMemorySessionCache(clock), clock=clock) as rig:
        await talk(rig, *range(20))
        await rig.sessions.checkpoint(ROOM, "twenty", 0, "t19-answer")
        await talk(rig, *range(20, 60))
        await rig.sessions.query_context(ROOM, recent_turns=5, model_context_window=16_000)
        rig.storage.calls.clear()
        context = await rig.sessions.query_context(ROOM, recent_turns=5, model_context_window=16_000)
        assert context.turns == 40
        assert rig.storage.calls == ["reading", "sessions.find"]


async def test_the_next_summary_covers_the_last_one_and_what_came_after(rig):
    await talk(rig, *range(4))
    first = await rig.sessions.checkpoint(ROOM, "one", 1, "t1-answer")
    await talk(rig, 4, 5)
    context = await rig.sessions.query_context(ROOM, model_context_window=16_000)
    assert context.full_history.startswith("Summary: one\n\nUser: question 2")
    second = await rig.sessions.checkpoint(ROOM, "one and two", 1, context.covers_through, context)
    assert (second.turns, second.number, first.turns) == (6, 2, 2)
    assert await rig.sessions.checkpoints(ROOM) == [second, first]
    assert await rig.sessions.checkpoints(ROOM, before=2) == [first]
    assert await rig.sessions.checkpoints(ROOM, limit=1) == [second]
    assert (await rig.sessions.get_session(ROOM)).flow_context.turn_count == 6


async def test_of_racing_checkpoints_one_wins(rig):
    await talk(rig, *range(4))
    calls = [rig.sessions.checkpoint(ROOM, f"number {n}", 1, "t3-answer", None, "") for n in range(8)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    won = [result for result in results if isinstance(result, Checkpoint)]
    assert len(won) == 1
    assert all(isinstance(result, Conflict) for result in results if result not in won)
    assert await rig.sessions.checkpoints(ROOM) == won
    assert (await rig.sessions.get_session(ROOM)).message_context.summary == won[0].summary


@pytest.mark.parametrize("engine", ["sqlite_url", "postgres_url"])
async def test_of_racing_checkpoints_of_two_stores_one_wins(engine, request):
    url = request.getfixturevalue(engine)
    async with open_rig(url) as one, open_rig(url) as two:
        await talk(one, *range(4))
        calls = [
            side.sessions.checkpoint(ROOM, f"number {n}", 1, "t3-answer", None, "")
            for n, side in enumerate([one, two, one, two])
        ]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(result, Checkpoint) for result in results) == 1
        assert sum(isinstance(result, Conflict) for result in results) == 3
        assert len(await two.sessions.checkpoints(ROOM)) == 1


async def test_turns_written_while_a_checkpoint_is_made_are_shown(rig):
    await talk(rig, *range(4))
    results = await asyncio.gather(
        rig.sessions.checkpoint(ROOM, "four", 0, "t3-answer"), talk(rig, 4), talk(rig, 5), talk(rig, 6)
    )
    assert results[0].covers_through == "t3-answer"
    assert sorted(await shown(rig, recent_turns=0, model_context_window=16_000)) == [4, 5, 6]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"summary": ""}, InvalidInput),
        ({"summary": " \n\t"}, InvalidInput),
        ({"summary": "历史摘要: "}, InvalidInput),
        ({"summary": None}, InvalidInput),
        ({"summary": "x" * 1_048_577}, InvalidInput),
        ({"recent_turns": -1}, InvalidInput),
        ({"recent_turns": "8"}, InvalidInput),
        ({"covers_through": 5}, InvalidInput),
        ({"covers_through": "nobody said that"}, NotFound),
        ({"covers_through": ""}, NotFound),
        ({"covers_through": "t0-answer"}, Conflict),
        ({"covers_through": "t1-query"}, Conflict),
        ({"expected_checkpoint": ""}, Conflict),
        ({"expected_checkpoint": "another"}, Conflict),
        ({"expected_checkpoint": 7}, InvalidInput),
    ],
)
async def test_a_checkpoint_that_cannot_be_changes_nothing(quick, given, error):
    """Turn 0 lies before a reset, turn 1 is covered."""
    await talk(quick, 0)
    await quick.sessions.reset(ROOM)
    await talk(quick, 1)
    await quick.sessions.checkpoint(ROOM, "one", 0, "t1-answer")
    await talk(quick, 2)
    before = await quick.sessions.query_context(ROOM)
    history = await quick.sessions.checkpoints(ROOM)
    with pytest.raises(error):
        await quick.sessions.checkpoint(ROOM, **{"summary": "s", **given})
    assert await quick.sessions.query_context(ROOM) == before
    assert await quick.sessions.checkpoints(ROOM) == history


@pytest.mark.parametrize("name", ["sessions.mark", "sessions.save", "commit", "rooms.lock_known"])
async def test_a_store_that_fails_keeps_nothing_of_a_checkpoint_or_a_reset(rig, name):
    await talk(rig, 0, 1)
    before = await rig.sessions.query_context(ROOM)
    rig.storage.fail(name)
    for call in (rig.sessions.checkpoint(ROOM, "lost", 0, "t1-answer"), rig.sessions.reset(ROOM)):
        with pytest.raises(StorageUnavailable):
            await call
    rig.storage.heal()
    assert await rig.sessions.query_context(ROOM) == before
    assert await rig.sessions.checkpoints(ROOM) == []
    assert (await rig.sessions.checkpoint(ROOM, "kept", 0, "t1-answer")).covers_through == "t1-answer"


async def test_a_message_deleted_while_it_was_summarised(rig):
    """The one that the summary ends with: it was made before."""
    await talk(rig, 0, 1)
    context = await rig.sessions.query_context(ROOM)
    await rig.messages.delete(ROOM, "t1-answer")
    with pytest.raises(Conflict, match="edited or deleted"):
        await rig.sessions.checkpoint(ROOM, "both", 0, context.covers_through)
    with pytest.raises(NotFound, match="t9-answer"):
        await rig.sessions.checkpoint(ROOM, "both", 0, "t9-answer")
    await rig.sessions.checkpoint(ROOM, "one", 0, "t1-query")
    await rig.messages.delete(ROOM, "t1-query")
    assert (await rig.sessions.checkpoint(ROOM, "in its place", 0, "t1-query")).covers_arrival == 3


async def test_a_reset_deletes_nothing_and_shows_nothing_before_it(rig):
    await talk(rig, 0, 1)
    await rig.sessions.checkpoint(ROOM, "old", 0, "t1-answer")
    await rig.sessions.patch_state(ROOM, {"global_state": {"shared": {"a": 1}}})
    value = await rig.sessions.reset(ROOM)
    assert (value.message_context.mode, value.flow_context.turn_count) == ("FULL_HISTORY", 0)
    assert value.flow_context.last_bot_message == ""
    assert value.global_state.shared == {"a": 1}
    context = await rig.sessions.query_context(ROOM, recent_turns=50)
    assert (context.history, context.turns, context.covers_through) == ("", 0, None)
    assert len(await rig.messages.page(ROOM)) == 4
    await talk(rig, 2)
    assert await shown(rig, recent_turns=50) == [2]
    marks = await rig.sessions.checkpoints(ROOM)
    assert [(one.number, one.kind) for one in marks] == [(2, "reset"), (1, "summary")]
    made = await rig.sessions.checkpoint(ROOM, "new", 0, "t2-answer")
    assert (made.number, made.turns, made.covers_through) == (3, 1, "t2-answer")


async def test_a_checkpoint_of_an_empty_conversation(rig):
    await rig.sessions.create_session(ROOM)
    made = await rig.sessions.checkpoint(ROOM, "之前在别处聊过血压")
    assert (made.covers_arrival, made.covers_through, made.turns, made.language) == (0, None, 0, "zh")
    await talk(rig, 0)
    context = await rig.sessions.query_context(ROOM, recent_turns=0)
    assert context.history.startswith("历史摘要: 之前在别处聊过血压\n\n用户: question 0")


async def test_a_room_that_never_was_a_session_can_be_summarised(rig):
    await rig.messages.add(
        [roomlore.Message(id=str(n), room_id=ROOM, sender_id="ann", text=f"remark {n}") for n in range(6)]
    )
    assert (await rig.sessions.query_context(ROOM)).turns == 6
    await rig.sessions.checkpoint(ROOM, "six remarks", 1, "5")
    context = await rig.sessions.query_context(ROOM, recent_turns=1)
    assert context.history == "Summary: six remarks\n\nUser: remark 5"


async def test_a_callers_state_of_the_name_of_the_note_is_left_out_and_harms_no_session(lore):
    await lore.sessions.create_session("conv", "ann")
    await lore.sessions.patch_state("conv", {"roomlore_asked": ["x", 10**18], "kept": 1})
    assert (await lore.sessions.get_session("conv")).extra == {"kept": 1}
    assert (await lore.sessions.query_context("conv", "hello")).history == ""
