"""Digests: where they begin, what they show first, for whom, and how they fit."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from engines import ENGINES
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.models import Heading, Message, Role, TalkState
from roomlore.services.digest import digest_service
from roomlore.wiring import Lore

START = datetime(2026, 3, 2, 9, tzinfo=UTC)

ENGLISH = [
    ("ann", "Which database do we use for the invoices service?"),
    ("bo", "@ann postgres, the invoices service needs transactions"),
    ("ann", "thanks, postgres it is for invoices then"),
    ("cy", "We decided that the release moves to Friday at 15:00."),
    ("bo", "ok, agreed"),
    ("dee", "@ann can you review the login page before lunch?"),
    ("cy", "Does anybody know where the spare monitor cable is?"),
]
CHINESE = [
    ("小安", "发票服务我们用哪个数据库？"),
    ("小波", "@小安 用postgres，发票服务需要事务"),
    ("小安", "谢谢，那发票服务就用postgres"),
    ("小陈", "大家注意，发布时间改到周五下午三点。"),
    ("小波", "好的，收到"),
    ("小迪", "@小安 午饭前你能看一下登录页面吗？"),
    ("小陈", "有没有人知道备用显示器线在哪里？"),
]


def said(lines: list[tuple[str, str]], *, room_id: str = "team", minutes: int = 40) -> list[Message]:
    return [
        Message(
            id=f"m{number}",
            room_id=room_id,
            sender_id=who,
            text=text,
            sent_at=START + timedelta(minutes=number if number < 3 else minutes * number),
        )
        for number, (who, text) in enumerate(lines)
    ]


@pytest.fixture(params=ENGINES)
async def lore(request: pytest.FixtureRequest) -> Lore:
    async with roomlore.open(request.getfixturevalue(request.param), background=False) as opened:
        yield opened


@pytest.mark.parametrize("lines", [ENGLISH, CHINESE], ids=["en", "zh"])
async def test_what_concerns_the_reader_comes_first_then_decisions_then_questions(
    lore: Lore, lines: list[tuple[str, str]]
) -> None:
    await lore.messages.add(said(lines))
    digest = await lore.digest("team", for_user=lines[0][0])
    whys = [entry.why for entry in digest.entries]
    assert whys[0] == "waits"
    assert digest.entries[0].lines[0].message_id == "m5"
    assert whys.index("decision") < whys.index("question")
    asked = next(entry for entry in digest.entries if entry.why == "question")
    assert [line.message_id for line in asked.lines] == ["m6"]
    assert asked.state is TalkState.OPEN
    decided = next(entry for entry in digest.entries if entry.why == "decision")
    assert decided.lines[0].message_id == "m3"
    assert decided.people[0] == lines[3][0]


@pytest.mark.parametrize("lines", [ENGLISH, CHINESE], ids=["en", "zh"])
async def test_it_begins_after_what_the_reader_wrote_or_marked_as_read(
    lore: Lore, lines: list[tuple[str, str]]
) -> None:
    await lore.messages.add(said(lines))
    reader = lines[0][0]
    assert (await lore.digest("team", for_user=reader)).messages == 4
    assert await lore.rooms.mark_read("team", reader, "m5") == 6
    assert [
        line.message_id for entry in (await lore.digest("team", for_user=reader)).entries for line in entry.lines
    ] == ["m6"]
    assert await lore.rooms.mark_read("team", reader, "m1") == 6, "a mark never moves back"
    assert await lore.rooms.mark_read("team", reader) == 7
    empty = await lore.digest("team", for_user=reader)
    assert (empty.entries, empty.messages, empty.tokens, empty.to_prompt()) == ((), 0, 0, "")


async def test_since_is_a_time_and_the_default_is_the_last_day(lore: Lore) -> None:
    await lore.messages.add(said(ENGLISH))
    late = Message(
        id="late", room_id="team", sender_id="bo", text="The cable was in my bag.", sent_at=START + timedelta(days=2)
    )
    await lore.messages.add(late)
    assert (await lore.digest("team")).messages == 1
    assert (await lore.digest("team", since=START)).messages == 8
    assert (await lore.digest("team", since=START.replace(tzinfo=None))).messages == 8
    assert (await lore.digest("team", since=START + timedelta(days=9))).messages == 0


async def test_it_never_takes_more_tokens_than_allowed(lore: Lore) -> None:
    many = [
        Message(
            id=f"a-rather-long-message-id-{number}",
            room_id="busy",
            sender_id=f"person-{number % 7}",
            text=f"{'The parser of module' if number % 2 else '解析模块'} {number // 3} {'fails again ' * 20}",
            sent_at=START + timedelta(minutes=7 * number),
        )
        for number in range(150)
    ]
    await lore.messages.add(many)
    for most in (50, 200, 900, 5000):
        digest = await lore.digest("busy", since=START, max_tokens=most)
        assert 0 < digest.tokens <= most
        assert digest.left + len(digest.entries) >= len(digest.entries)
        for entry in digest.entries:
            for line in entry.lines:
                assert f"[{line.message_id}]" in digest.to_prompt()


async def test_a_thread_answered_later_is_not_open(lore: Lore) -> None:
    await lore.messages.add(said(ENGLISH[:3]))
    (entry,) = (await lore.digest("team")).entries
    assert entry.state is TalkState.ANSWERED
    assert entry.messages == 3
    assert "invoices" in entry.title
    assert entry.people == ("ann", "bo")


async def test_notices_and_empty_messages_are_no_news(lore: Lore) -> None:
    await lore.messages.add(
        [
            Message(id="1", room_id="r", sender_id="sys", text="ann joined", role=Role.SYSTEM, sent_at=START),
            Message(id="2", room_id="r", sender_id="ann", text="", sent_at=START),
            Message(id="3", room_id="r", sender_id="ann", text="", metadata={"caption": "the new logo"}, sent_at=START),
        ]
    )
    digest = await lore.digest("r")
    assert [line.text for entry in digest.entries for line in entry.lines] == ["the new logo"]


async def test_only_who_may_see_the_room_gets_it(lore: Lore) -> None:
    await lore.messages.add(said(ENGLISH))
    await lore.messages.add(said([("eve", "hello")], room_id="other"))
    everything = await lore.digest("team", since=START)
    assert await lore.digest("team", since=START, viewer="room:team") == everything
    for stranger in ("room:other", "user:eve", "user:nobody"):
        with pytest.raises(NotFound):
            await lore.digest("team", since=START, viewer=stranger)
    with pytest.raises(NotFound):
        await lore.digest("nowhere", viewer=None)
    await lore.rooms.set_kind("team", "public")
    assert await lore.digest("team", since=START, viewer="user:eve") == everything


async def test_a_member_is_shown_what_was_said_while_they_were_there(lore: Lore) -> None:
    await lore.messages.add(said(ENGLISH))
    joined = START + timedelta(minutes=4 * 40)
    await lore.rooms.set_kind("team", "private")
    await lore.rooms.add_members("team", [roomlore.Member("eve", joined_at=joined)])
    digest = await lore.digest("team", since=START, viewer="user:eve")
    assert digest.messages == 3
    assert {line.message_id for entry in digest.entries for line in entry.lines} <= {"m4", "m5", "m6"}


async def test_bad_input_says_what_to_do(lore: Lore) -> None:
    await lore.messages.add(said(ENGLISH))
    with pytest.raises(InvalidInput, match="from 50 to"):
        await lore.digest("team", max_tokens=10)
    with pytest.raises(InvalidInput, match="datetime"):
        await lore.digest("team", since="yesterday")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="same person"):
        await lore.digest("team", for_user="bo", viewer="user:ann")
    with pytest.raises(InvalidInput, match="sender id"):
        await lore.digest("team", for_user="")
    with pytest.raises(NotFound):
        await lore.rooms.mark_read("team", "ann", "no such message")
    with pytest.raises(NotFound):
        await lore.rooms.mark_read("nowhere", "ann")


async def test_marks_go_when_a_person_is_forgotten(lore: Lore) -> None:
    await lore.messages.add(said(ENGLISH))
    await lore.rooms.mark_read("team", "ann")
    await lore.rooms.mark_read("team", "bo", "m4")
    await lore.privacy.forget("ann")
    async with lore.storage.reading(lore.tenant) as work:
        assert await work.progress.marks_of_room(room_id="team", prefix="read:") == {"read:bo": 5}


@pytest.mark.parametrize("lines", [ENGLISH, CHINESE], ids=["en", "zh"])
async def test_threads_have_titles_that_grow_with_them(lore: Lore, lines: list[tuple[str, str]]) -> None:
    await lore.messages.add(said(lines[:1]))
    ((_, first),) = await lore.rooms.threads("team")
    assert first.title.startswith(lines[0][1][:10])
    await lore.messages.add(said(lines)[1:3])
    ((_, grown),) = await lore.rooms.threads("team")
    assert "postgres" in grown.title


@pytest.mark.parametrize(
    ("asked", "told"),
    [("deploy is done, version 42", "thanks, that helps a lot with the invoices page"), ("谁带钥匙？", "钥匙在我这里")],
    ids=["en", "zh"],
)
async def test_a_platform_reply_to_the_reader_concerns_the_reader(lore: Lore, asked: str, told: str) -> None:
    """Also if what it answers was said before the digest begins."""
    first, second = said([("ann", asked), ("bo", told)])
    await lore.messages.add([first, replace(second, reply_to=first.id)])
    for since in (None, START - timedelta(hours=1)):
        digest = await lore.digest("team", for_user="ann", since=since)
        assert [entry.why for entry in digest.entries] == ["mentions"]
        assert [line.message_id for line in digest.entries[0].lines if line.why == "mentions"] == [second.id]
    assert [entry.why for entry in (await lore.digest("team", for_user="bo", since=START)).entries] != ["mentions"]


NAMED = [("u1", "Ann Lee"), ("u2", "小安"), ("u3", "Bo"), ("u4", "Bo"), ("Bo5", "")]


async def test_a_reader_is_told_by_id_or_by_a_name_that_one_person_has(lore: Lore) -> None:
    await lore.messages.add(
        Message(id=f"m{n}", room_id="team", sender_id=who, sender_name=name, text=f"hello {n}", sent_at=START)
        for n, (who, name) in enumerate(NAMED)
    )
    for given, meant in (("u1", "u1"), ("ann lee", "u1"), ("@Ann Lee", "u1"), ("小安", "u2"), ("bo5", "Bo5")):
        digest = await lore.digest("team", for_user=given)
        assert digest.for_user == meant
        assert digest.messages == len(NAMED) - 1 - [who for who, _ in NAMED].index(meant)
    with pytest.raises(InvalidInput, match=r"2 people .* called 'bo'; .* u3, u4"):
        await lore.digest("team", for_user="bo")
    for since in (None, START):
        with pytest.raises(NotFound, match=r"Nobody .* 'eve'.* u1 \(Ann Lee\), u2 \(小安\)"):
            await lore.digest("team", for_user="eve", since=since)
    await lore.rooms.mark_read("team", "eve", "m3")
    assert (await lore.digest("team", for_user="eve")).messages == 1
    await lore.rooms.add_members("team", ["dan"])
    assert (await lore.digest("team", for_user="dan")).messages == len(NAMED)


async def test_who_sees_a_part_of_a_room_learns_nothing_of_the_rest(lore: Lore) -> None:
    """Neither from what is shown, nor from where the digest begins, nor from who is known."""
    await lore.messages.add(said(ENGLISH))
    await lore.rooms.set_kind("team", "private")
    left = START + timedelta(minutes=5 * 40)
    await lore.rooms.add_members("team", [roomlore.Member("eve", joined_at=START, left_at=left)])
    before = [
        await lore.digest("team", viewer="user:eve"),
        await lore.digest("team", for_user="eve", viewer="user:eve"),
    ]
    assert {one.messages for one in before} == {6}
    later = [
        Message(
            id=f"late{n}",
            room_id="team",
            sender_id="zed",
            text=f"postgres invoices news {n}, decided",
            sent_at=left + timedelta(days=3, minutes=n),
        )
        for n in range(30)
    ]
    await lore.messages.add(later)
    after = [await lore.digest("team", viewer="user:eve"), await lore.digest("team", for_user="eve", viewer="user:eve")]
    assert after == before
    with pytest.raises(InvalidInput, match="same person"):
        await lore.digest("team", for_user="zed", viewer="user:eve")


async def test_a_thread_has_one_title(lore: Lore) -> None:
    await lore.messages.add(said(ENGLISH) + said(CHINESE, room_id="other"))
    for room_id in ("team", "other"):
        listed = await lore.rooms.threads(room_id)
        ids = [one.thread_id for _, one in listed]
        assert await lore.rooms.headings(room_id, [*ids, "nowhere"]) == {
            one.thread_id: Heading(title=one.title, state=one.state) for _, one in listed
        }
        assert await lore.rooms.headings(room_id, ids, viewer=f"room:{room_id}")
        assert await lore.rooms.headings(room_id, ids, viewer="user:eve") == {}
        named = {one.thread_id: one.title for _, one in listed}
        digest = await lore.digest(room_id, since=START)
        # An entry of its own is what was said in a thread after a pause.
        titles = {entry.thread_id: entry.title for entry in digest.entries}
        assert {one: titles[one] for one in named} == named
        states = {one.thread_id: one.state for _, one in listed}
        shown = {entry.thread_id: entry.state for entry in digest.entries}
        assert {one: shown[one] for one in states} == states
        assert TalkState.OPEN in states.values()


async def test_what_no_digest_shows_does_not_count_towards_its_limit(
    lore: Lore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest_service, "MAX_READ", 4)
    monkeypatch.setattr(digest_service, "_AT_ONCE", 3)
    notices = [
        Message(id=f"s{n}", room_id="team", sender_id="sys", text="joined", role=Role.SYSTEM, sent_at=START)
        for n in range(9)
    ]
    tools = [
        Message(
            id=f"t{n}",
            room_id="team",
            sender_id="bot",
            text="",
            role=Role.ASSISTANT,
            has_tool_calls=True,
            sent_at=START,
        )
        for n in range(4)
    ]
    await lore.messages.add([*said(ENGLISH[:5]), *notices, *tools])
    digest = await lore.digest("team", since=START - timedelta(days=1), max_tokens=2_000)
    shown = {line.message_id for entry in digest.entries for line in entry.lines}
    assert "m3" in shown, "seventeen newer messages are notices, tool calls or empty"
    assert "m0" not in shown, "only four are read"
    assert digest.messages == 18
    monkeypatch.setattr(digest_service, "MAX_LOOKED_AT", 10)
    assert (await lore.digest("team", since=START - timedelta(days=1))).entries == ()
