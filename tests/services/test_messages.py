"""The promises of `lore.messages`: batches, duplicates, conflicts, edits, deletes, late replies, bad input."""

import asyncio
import time
import tracemalloc
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import roomlore
from roomlore import Conflict, Entry, InvalidInput, LinkKind, Message, NotFound

NINE = datetime(2026, 5, 4, 9, tzinfo=UTC)


def said(number: int, text: str = "hello there", sender: str = "ann", **fields) -> Message:
    fields.setdefault("sent_at", NINE + timedelta(minutes=number))
    return Message(
        id=fields.pop("id", str(number)), room_id=fields.pop("room_id", "r"), sender_id=sender, text=text, **fields
    )


async def texts(lore: roomlore.Lore, room_id: str = "r") -> list[str]:
    return [message.text for message in await lore.messages.page(room_id)]


async def test_a_batch_of_several_rooms_keeps_each_rooms_order(lore):
    report = await lore.messages.add([said(1), said(1, room_id="s"), said(2), said(3)])
    assert report.added == ("1", "2", "3", "1")
    assert [m.arrival for m in await lore.messages.page("r")] == [1, 2, 3]
    assert [m.arrival for m in await lore.messages.page("s")] == [1]


async def test_the_same_message_again_is_a_duplicate_and_changes_nothing(lore):
    await lore.messages.add(said(1))
    before = await lore.rooms.get("r")
    report = await lore.messages.add([said(1), said(1)])
    assert report.added == ()
    assert report.duplicates == ("1", "1")
    assert await lore.rooms.get("r") == before


async def test_a_duplicate_within_the_batch_is_one_message(lore):
    report = await lore.messages.add([said(1), said(2), said(1)])
    assert (report.added, report.duplicates) == (("1", "2"), ("1",))


async def test_other_content_under_a_known_id_is_a_conflict_and_nothing_is_stored(lore):
    await lore.messages.add(said(1, "first"))
    with pytest.raises(Conflict, match="'1'"):
        await lore.messages.add([said(2), said(1, "second")])
    assert await texts(lore) == ["first"]


async def test_another_topic_is_other_content(lore):
    await lore.messages.add([said(1, topic_id="tea"), said(2)])
    assert (await lore.messages.add([said(1, topic_id="tea"), said(2)])).duplicates == ("1", "2")
    report = await lore.messages.add([said(1), said(2, topic_id="tea")], on_conflict="report")
    assert report.conflicts == ("1", "2")
    with pytest.raises(InvalidInput, match="topic_id of message '3'"):
        await lore.messages.add(said(3, topic_id=7))


async def test_conflicts_can_be_reported_while_the_rest_is_stored(lore):
    await lore.messages.add(said(1, "first"))
    report = await lore.messages.add([said(2, "new"), said(1, "second")], on_conflict="report")
    assert (report.added, report.conflicts) == (("2",), ("1",))
    assert await texts(lore) == ["first", "new"]


async def test_of_two_messages_with_one_id_in_a_batch_the_first_is_stored_and_the_second_reported(lore):
    report = await lore.messages.add([said(1, "first"), said(2), said(1, "second")], on_conflict="report")
    assert (report.added, report.conflicts) == (("1", "2"), ("1",))
    assert (await texts(lore))[0] == "first"


async def test_the_same_message_from_two_writers_at_once_is_stored_once(lore):
    reports = await asyncio.gather(*(lore.messages.add(said(1)) for _ in range(8)))
    assert sum(len(report.added) for report in reports) == 1
    assert sum(len(report.duplicates) for report in reports) == 7


async def test_a_missing_time_is_now_and_is_flagged(lore):
    begun = datetime.now(UTC)
    await lore.messages.add([said(1), said(2, sent_at=None)])
    second = (await lore.messages.get("r", "2")).message
    assert begun <= second.at <= datetime.now(UTC)
    assert second.sent_at_estimated


async def test_a_message_without_a_time_is_still_recognised(lore):
    await lore.messages.add([said(1), said(2, sent_at=None)])
    assert (await lore.messages.add(said(2, sent_at=None))).duplicates == ("2",)


async def test_naive_times_are_utc_and_others_are_converted(lore):
    beijing = timezone(timedelta(hours=8))
    naive, local = datetime(2026, 5, 4, 9), datetime(2026, 5, 4, 17, tzinfo=beijing)
    await lore.messages.add([said(1, sent_at=naive), said(2, sent_at=local)])
    assert [m.sent_at for m in await lore.messages.page("r")] == [NINE, NINE]


async def test_an_edit_is_analysed_anew_and_keeps_place_and_link(lore):
    await lore.messages.add([said(1, "the cache is broken"), said(2, "which cache?", "bob", reply_to="1")])
    before = await lore.messages.get("r", "2")
    edited = await lore.messages.edit("r", "2", text="谁重启了数据库？")
    after = await lore.messages.get("r", "2")
    assert after.message == edited
    assert edited.edited_at is not None
    assert edited.arrival == before.message.arrival
    assert after.link == before.link
    assert "数据库" in after.features.keywords
    assert edited.tokens != before.message.tokens


async def test_edits_may_arrive_in_any_order(lore):
    await lore.messages.add(said(1))
    edited = await lore.messages.edit("r", "1", text="second", edited_at=NINE + timedelta(hours=2))
    assert edited.edited_at == NINE + timedelta(hours=2)
    with pytest.raises(Conflict, match="edited later"):
        await lore.messages.edit("r", "1", text="first", edited_at=NINE + timedelta(hours=1))
    assert await texts(lore) == ["second"]
    with pytest.raises(InvalidInput, match="edited_at"):
        await lore.messages.edit("r", "1", text="third", edited_at="tomorrow")


async def test_a_message_added_after_an_edit_is_linked_as_after_a_restart(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    async with roomlore.open(url) as lore:
        await lore.messages.add([said(1, "lunch at noon?"), said(2, "the deploy failed", "bob")])
        await lore.messages.edit("r", "1", text="who can restart nginx on web-2?")
        await lore.messages.add(said(3, "nginx on web-2 restarted", "cat"))
        link = (await lore.messages.get("r", "3")).link
    async with roomlore.open(f"sqlite:///{tmp_path / 'b.db'}") as other:
        await other.messages.add([said(1, "lunch at noon?"), said(2, "the deploy failed", "bob")])
        await other.messages.edit("r", "1", text="who can restart nginx on web-2?")
    async with roomlore.open(f"sqlite:///{tmp_path / 'b.db'}") as other:
        await other.messages.add(said(3, "nginx on web-2 restarted", "cat"))
        assert (await other.messages.get("r", "3")).link == link


async def test_a_deleted_message_is_gone_but_its_id_stays_taken(lore):
    await lore.messages.add([said(1, "secret"), said(2, "next", reply_to="1")])
    assert await lore.messages.delete("r", ["1", "unknown"]) == 1
    assert await texts(lore) == ["next"]
    with pytest.raises(NotFound, match="'1'"):
        await lore.messages.get("r", "1")
    assert (await lore.messages.add(said(1, "secret"))).duplicates == ("1",)
    assert await texts(lore) == ["next"]
    assert (await lore.messages.get("r", "2")).link.kind is LinkKind.PLATFORM


async def test_a_reply_is_linked_when_its_target_arrives_later(lore):
    await lore.messages.add(said(5, "yes, tomorrow", "bob", reply_to="4"))
    await lore.messages.add(said(6, "great", "cat", reply_to="5"))
    assert (await lore.messages.get("r", "5")).link.kind is not LinkKind.PLATFORM
    await lore.messages.add(said(4, "do we ship tomorrow?"))
    target, late, below = [await lore.messages.get("r", number) for number in "456"]
    assert late.link.kind is LinkKind.PLATFORM
    assert late.link.parent == target.message.arrival
    assert late.link.thread == below.link.thread == target.link.thread


async def test_a_reply_names_whom_it_answers_while_that_message_is_there(lore):
    def named(entry: Entry) -> tuple[str | None, str | None]:
        return entry.features.reply.message_id, entry.features.reply.sender_id

    await lore.messages.add([said(1, "hi", "cat"), said(5, "yes, tomorrow", "bob", reply_to="4")])
    assert named(await lore.messages.get("r", "5")) == ("4", None)
    await lore.messages.add([said(4, "do we ship tomorrow?"), said(6, "great")])
    for viewer in (None, "room:r", "user:ann"):
        assert named(await lore.messages.get("r", "5", viewer=viewer)) == ("4", "ann"), viewer
    await lore.messages.edit("r", "5", text="no, today")
    assert named(await lore.links.correct("r", "5", answers=None)) == ("4", "ann")
    await lore.messages.delete("r", "4")
    assert named(await lore.messages.get("r", "5")) == ("4", None)


@pytest.mark.parametrize("split", [1, 2, 3])
async def test_a_late_target_in_the_same_batch_is_found_too(lore, split):
    batch = [said(5, "yes", "bob", reply_to="4"), said(6, "great", "cat", reply_to="5"), said(4, "do we ship?")]
    await lore.messages.add(batch[:split])
    await lore.messages.add(batch[split:])
    links = {m.id: (await lore.messages.get("r", m.id)).link for m in batch}
    assert links["5"].kind is LinkKind.PLATFORM
    assert links["5"].parent == 3
    assert {link.thread for link in links.values()} == {links["4"].thread}


async def test_a_target_that_hundreds_wait_for_is_added_at_once(lore):
    await lore.messages.add([said(number, "same here", f"s{number % 9}", reply_to="late") for number in range(500)])
    begun = time.process_time()
    await lore.messages.add(said(0, "who else?", id="late"))
    assert time.process_time() - begun < 4
    links = [(await lore.messages.get("r", str(number))).link for number in (0, 250, 499)]
    assert {(link.kind, link.thread, link.parent) for link in links} == {(LinkKind.PLATFORM, 501, 501)}


async def test_replies_in_a_circle_are_harmless(lore):
    await lore.messages.add([said(1, "a", reply_to="2"), said(2, "b", "bob", reply_to="1"), said(3, "c", reply_to="3")])
    first, second, third = [await lore.messages.get("r", number) for number in "123"]
    assert second.link.parent == first.message.arrival
    assert first.link.parent is None
    assert third.link.kind is not LinkKind.PLATFORM
    assert (await lore.context.build("r", "2")).parent == "1"


async def test_a_clock_running_backwards_never_links_to_a_later_time(lore):
    await lore.messages.add([said(9, "who broke the build?"), said(3, "bob did", "bob", sent_at=NINE)])
    entry = await lore.messages.get("r", "3")
    assert entry.link.parent is None
    assert len(entry.link.thread_candidates) == 0


async def test_nul_surrogates_and_emoji_survive(lore):
    text = "a\x00b \ud83d c 👩‍👩‍👧‍👦 \\u0000 e\u0301"
    await lore.messages.add(said(1, text, metadata={"k\x00": ["v\x00", {"n": None}]}))
    message = (await lore.messages.get("r", "1")).message
    assert message.text == text
    assert message.metadata == {"k\x00": ["v\x00", {"n": None}]}


async def test_a_text_of_one_megabyte_is_stored_and_a_longer_one_refused(lore):
    await lore.messages.add(said(1, "x" * 1_048_576))
    with pytest.raises(InvalidInput, match=r"message '2'.*max_text_chars"):
        await lore.messages.add(said(2, "x" * 1_048_577))


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (said(1, sender=""), "sender_id"),
        (said(1, room_id=""), "room_id"),
        (said(1, sender_name="n" * 600), "sender_name"),
        (said(1, metadata={"x": float("nan")}), "metadata"),
        (said(1, text=None), "text"),
        (said(1, sent_at="yesterday"), "sent_at"),
        (said(1, role="robot"), "role"),
        (said(1, mentions="bob"), "mentions"),
        (said(1, reply_to=7), "reply_to"),
        (said(1, metadata={"x": object()}), "metadata"),
        (said(1, sender_name=None), "sender_name"),
        (said(1, reply_to=0), "reply_to"),
        (said(1, has_tool_calls="yes"), "has_tool_calls"),
        (said(1, sent_at=datetime.min.replace(tzinfo=timezone(timedelta(hours=9)))), "sent_at"),
        ({"id": "1"}, "roomlore.Message"),
    ],
)
async def test_bad_messages_are_named(lore, message, named):
    with pytest.raises(InvalidInput, match=named):
        await lore.messages.add([said(2), message])
    with pytest.raises(NotFound):
        await lore.messages.page("r")


@pytest.mark.parametrize("given", [None, 7, "text", {"id": "1"}])
async def test_what_is_no_message_is_named(lore, given):
    with pytest.raises(InvalidInput, match=r"roomlore\.Message"):
        await lore.messages.add(given)


@pytest.mark.parametrize("limit", [-1, 0, 2**63, "x", None, True, 2.5])
async def test_a_limit_that_is_none_is_refused_everywhere(lore, limit):
    await lore.messages.add(said(1))
    calls = (lore.messages.page("r", limit=limit), lore.rooms.page(limit=limit), lore.rooms.threads("r", limit=limit))
    for call in (*calls, lore.rooms.thread("r", "1", limit=limit)):
        with pytest.raises(InvalidInput, match="limit"):
            await call
    for after in (-1, "x", None):
        with pytest.raises(InvalidInput, match="after"):
            await lore.messages.page("r", after=after)


async def test_an_id_that_is_no_string_is_bad_input(lore):
    await lore.messages.add(said(1))
    calls = (
        lore.messages.get("r", 1),
        lore.messages.page(7),
        lore.messages.delete("r", [1]),
        lore.context.build("r", 1),
    )
    for call in calls:
        with pytest.raises(InvalidInput, match="string"):
            await call


async def test_an_edit_says_what_to_change(lore):
    await lore.messages.add(said(1))
    for change in ({}, {"mentions": "bob"}, {"text": 7}):
        with pytest.raises(InvalidInput):
            await lore.messages.edit("r", "1", **change)
    assert (await lore.messages.get("r", "1")).message.edited_at is None


async def test_an_edit_keeps_whom_the_sender_was_talking_with(lore):
    await lore.messages.add([said(1, "hi", "bob"), said(2, "bob: hello"), said(3, "and one more thing")])
    before = (await lore.messages.get("r", "3")).features.partners
    await lore.messages.edit("r", "3", text="and another thing")
    assert (await lore.messages.get("r", "3")).features.partners == before == ("bob",)


async def test_a_role_may_be_given_as_a_plain_word(lore):
    await lore.messages.add(said(1, role="assistant", mentions=["bob"]))
    message = (await lore.messages.get("r", "1")).message
    assert (message.role, message.mentions) == (roomlore.Role.ASSISTANT, ("bob",))


async def test_unknown_rooms_and_messages_are_said_to_be_unknown(lore):
    for call in (lore.messages.page("no"), lore.messages.get("no", "1"), lore.messages.edit("no", "1", text="x")):
        with pytest.raises(NotFound, match="no"):
            await call


async def test_another_tenant_sees_nothing(lore):
    await lore.messages.add(said(1))
    other = lore.for_tenant("other")
    with pytest.raises(NotFound):
        await other.messages.page("r")
    assert await other.rooms.page() == []
    await other.messages.add(said(1, "theirs"))
    assert await texts(lore) == ["hello there"]


async def test_export_gives_every_room_in_order_and_can_be_added_elsewhere(lore):
    await lore.messages.add(
        [said(n, f"text {n}", room_id=room, sent_at=None if n == 2 else NINE) for room in "ba" for n in (1, 2)]
    )
    exported = [message async for message in lore.messages.export()]
    assert [(m.room_id, m.id) for m in exported] == [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]
    async with roomlore.open("sqlite://") as other:
        await other.messages.add(exported)
        assert [message async for message in other.messages.export()] == exported


async def share_of_the_loop(work: Coroutine[Any, Any, object]) -> float:
    """Return the share of some work's processor time that is spent on the event loop's thread."""
    loop, all_threads = time.thread_time(), time.process_time()
    await work
    return (time.thread_time() - loop) / (time.process_time() - all_threads)


LONG = ("我们周一在小会议室见，谁有空？ what do you think about the release plan? " * 500)[:20_000]


async def test_long_texts_are_read_beside_the_event_loop(lore):
    await lore.messages.add([said(number) for number in range(3)])
    batch = [said(10 + number, LONG) for number in range(6)]
    assert await share_of_the_loop(lore.messages.add(batch)) < 0.5
    assert await share_of_the_loop(lore.messages.edit("r", "1", text=LONG)) < 0.5


async def test_a_batch_over_many_rooms_holds_what_linking_needs_of_a_few(lore):
    await lore.messages.add(said(0))
    tracemalloc.start()
    try:
        await lore.messages.add([said(1, room_id=f"room {number}") for number in range(200)])
        _, highest = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert highest < 80_000_000


async def test_rooms_that_are_larger_than_the_cache_are_linked_as_ever():
    spoken = [said(n, f"what about {n}?", sender=f"p{n % 3}", room_id=f"r{n % 5}") for n in range(100)]
    links = []
    for megabytes in (0, 1, 192):
        async with roomlore.open("sqlite://", settings=roomlore.Settings(room_cache_mb=megabytes)) as lore:
            for start in range(0, 100, 10):
                await lore.messages.add(spoken[start : start + 10])
            links.append([(await lore.messages.get(one.room_id, one.id)).link for one in spoken[-20:]])
    assert links[0] == links[1] == links[2]
