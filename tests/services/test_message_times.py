"""Messages without a time, and with one that cannot be right: when they count, and who is shown them."""

import json
from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from roomlore import Message, NotFound, Role, Settings, Source
from roomlore.core.records import to_line
from roomlore_testkit import FrozenClock
from roomlore_testkit.model_server import ModelServer, Says

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FAR = datetime(2099, 1, 1, tzinfo=UTC)
WHATSAPP = """\
01/02/2024, 10:00 - Ann: the plan is green 绿色
99/99/2024, 10:05 - Ann: the price is nine 九块
01/02/2024, 10:30 - Bo left
99/99/2024, 10:35 - Ann: bo owes us money 欠钱
01/02/2024, 10:40 - Cy: good that he is gone
99/99/2024, 10:45 - Ann: the door code is 4711
"""


@pytest.fixture
def clock(monkeypatch):
    found = FrozenClock(NOW)
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: found)
    return found


@pytest.fixture
async def lore(clock, tmp_path):
    settings = Settings(archive_folder=str(tmp_path / "archives"))
    async with roomlore.open("sqlite://", settings=settings, background=False) as opened:
        yield opened


def said(name: str, text: str = "", at: datetime | None = None, **more) -> Message:
    given = {"room_id": "team", "sender_id": "ann"} | more
    return Message(id=name, text=text or f"what {name} says", sent_at=at, **given)


async def shown(lore, who: str) -> list[str]:
    try:
        return [one.id for one in await lore.messages.page("team", viewer=f"user:{who}")]
    except NotFound:
        return []


async def test_a_message_without_a_time_was_said_when_it_was_added(lore, clock):
    await lore.rooms.set_members("team", ["ann", "bo"])
    clock.advance(60)
    await lore.messages.add(said("open", "lunch is at noon", NOW - timedelta(days=40)))
    clock.advance(60)
    await lore.rooms.remove_members("team", ["bo"])
    clock.advance(60)
    await lore.messages.add([said("secret", "bo is dismissed 被开除"), said("more", "nobody tell him")])
    clock.advance(60)
    await lore.rooms.add_members("team", ["cy"])
    stored = (await lore.messages.get("team", "secret")).message
    assert (stored.sent_at, stored.sent_at_estimated) == (NOW + timedelta(minutes=3), True)
    assert [await shown(lore, who) for who in ("ann", "bo", "cy", "eve")] == [["open", "secret", "more"], [], [], []]
    await lore.memories.add("user:bo", "bo is dismissed", sources=[Source("team", "secret")])
    for who, seen in {"ann": True, "bo": False, "cy": False}.items():
        viewer = f"user:{who}"
        found = await lore.messages.search(query="bo dismissed 开除", viewer=viewer)
        assert ("secret" in {hit.message.id for hit in found.hits}) is seen
        assert bool(await lore.memories.page("user:bo", viewer=viewer)) is seen
        recalled = await lore.recall.build(["user:bo"], [{"role": "user", "content": "dismissed?"}], viewer=viewer)
        assert bool(recalled.facts) is seen


async def test_the_digest_the_evolution_and_the_retention_see_it_as_of_now(lore, clock):
    await lore.messages.add(said("old", "the old plan", NOW - timedelta(days=500)))
    clock.advance(60)
    await lore.messages.add(said("new", "We agreed: stand-up is every Monday at 9 in the blue room"))
    made = await lore.digest("team", since=clock.now() - timedelta(hours=1))
    assert made.messages == 1
    assert "stand-up" in made.to_prompt()
    evolved = await lore.memories.evolve("team", days=1, mode="offline")
    assert evolved.messages == 1
    assert (await lore.archives.run(days=365)).messages == 1
    assert [one.id for one in await lore.messages.page("team")] == ["new"]
    clock.advance(86_400 * 400)
    assert (await lore.archives.run(days=365)).messages == 1
    before = (await lore.archives.kept())[-1].archive_id
    await lore.archives.restore(before)
    (back,) = await lore.messages.page("team")
    assert (back.id, back.origin.first, back.origin.last) == (
        "new",
        NOW + timedelta(minutes=1),
        NOW + timedelta(minutes=1),
    )


async def test_a_time_in_the_year_2099_dates_nothing_else(lore, clock, tmp_path):
    await lore.messages.add(said("far", "the clock of my phone is wrong", FAR))
    clock.advance(60)
    await lore.messages.add(said("next", "then mend it"))
    assert (await lore.rooms.get("team")).last_sent_at == clock.now()
    far, after = await lore.messages.page("team")
    assert (far.sent_at, far.sent_at_estimated, far.heard_until) == (FAR, True, NOW)
    assert (after.sent_at, after.sent_at_estimated) == (clock.now(), True)
    assert (await lore.messages.add(said("far", "the clock of my phone is wrong", FAR))).duplicates == ("far",)
    clock.advance(86_400 * 3)
    await lore.messages.add(said("late", "and now?"))
    assert (await lore.digest("team", since=clock.now() - timedelta(hours=1))).messages == 1
    assert (await lore.memories.evolve("team", days=1, mode="offline")).messages == 1
    asked = await lore.messages.search("team", "what was said today?", asked_at="newest")
    assert [hit.message.id for hit in asked.hits] == ["late"]
    speakers = (await lore.rooms.people("team")).people
    assert speakers["ann"].spoke.end == clock.now()
    line = {"room_id": "team", "sender_id": "ann", "sent_at": None}
    path = tmp_path / "more.jsonl"
    path.write_text(
        "\n".join(
            json.dumps(line | {"id": f"i{n}", "text": "x", "sent_at": at})
            for n, at in enumerate((FAR.isoformat(), None))
        )
    )
    await lore.imports.run(path)
    *_, imported, untimed = await lore.messages.page("team")
    assert (imported.sent_at, untimed.sent_at) == (FAR, clock.now())


async def test_the_reply_to_a_message_dated_ahead_is_not(clock):
    async with ModelServer(lambda _: Says(text="ready")) as server:
        settings = Settings(
            providers={"p": {"base_url": server.url}}, models={"chat": {"providers": [{"name": "p", "model_id": "m"}]}}
        )
        async with roomlore.open("sqlite://", settings=settings, background=False) as lore:
            await lore.replies.reply(said("far", at=FAR), agent_id="bot")
            asked, answered = await lore.messages.page("team")
    assert (asked.sent_at, asked.dated_at) == (FAR, NOW)
    assert (answered.sent_at, answered.sent_at_estimated) == (NOW, False)


async def test_who_speaks_once_at_an_unknown_time_of_an_import_has_heard_nothing_else(lore, tmp_path):
    lines = [("1", "ann", "2024-02-01T10:00:00Z"), ("2", "bo", "soon"), ("3", "ann", "2024-02-01T11:00:00Z")]
    path = tmp_path / "a.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"id": name, "room_id": "team", "sender_id": who, "text": f"text {name}", "sent_at": at})
            for name, who, at in lines
        )
    )
    report = await lore.imports.run(path)
    assert (report.added, report.undated) == (3, 1)
    assert [await shown(lore, who) for who in ("ann", "bo")] == [["1", "2", "3"], []]


async def test_an_import_shows_what_has_no_time_to_those_who_were_there_before_and_after(lore, clock, tmp_path):
    path = tmp_path / "WhatsApp Chat with team.txt"
    path.write_text(WHATSAPP, encoding="utf-8")
    await lore.rooms.set_kind("team", "private")
    await lore.rooms.set_members(
        "team", [roomlore.Member(who, datetime(2024, 1, 1, tzinfo=UTC)) for who in ("Ann", "Bo", "Cy")]
    )
    await lore.imports.run(path, room_id="team", timezone="UTC")
    texts = {one.id: one.text for one in await lore.messages.page("team") if one.role is not Role.SYSTEM}
    seen = {who: [texts[one] for one in await shown(lore, who) if one in texts] for who in ("Ann", "Bo", "Cy")}
    assert seen["Ann"] == seen["Cy"] == list(texts.values())
    assert seen["Bo"] == ["the plan is green 绿色", "the price is nine 九块"]
    clock.advance(60)
    await lore.rooms.remove_members("team", ["Cy"])
    assert "the door code is 4711" in [texts.get(one) for one in await shown(lore, "Cy")], "cy was there at the import"


async def test_an_export_comes_back_with_the_times_in_which_it_was_heard(lore, clock, tmp_path):
    path = tmp_path / "WhatsApp Chat with team.txt"
    path.write_text(WHATSAPP, encoding="utf-8")
    await lore.imports.run(path, room_id="team", timezone="UTC")
    await lore.messages.add([said("live"), said("far", at=FAR)])
    clock.advance(86_400)
    exported = [one async for one in lore.messages.export()]
    (tmp_path / "export.jsonl").write_bytes(b"".join(map(to_line, exported)))
    again = await lore.imports.run(tmp_path / "export.jsonl")
    assert (again.added, again.conflict_count, again.duplicates) == (0, 0, len(exported))
    async with roomlore.open("sqlite://", background=False) as other:
        report = await other.imports.run(tmp_path / "export.jsonl")
        assert (report.added, report.undated) == (len(exported), 0)
        assert [one async for one in other.messages.export()] == exported


async def test_what_an_older_export_estimated_is_shown_to_fewer(lore, clock, tmp_path):
    """It does not say if the message was live."""
    record = {"id": "1", "room_id": "team", "sender_id": "ann", "text": "x", "sent_at": "2024-02-01T10:00:00Z"}
    (tmp_path / "a.jsonl").write_text(json.dumps(record | {"sent_at_estimated": True}))
    await lore.imports.run(tmp_path / "a.jsonl")
    (one,) = await lore.messages.page("team")
    assert (one.origin.first, one.origin.last) == (datetime(2024, 2, 1, 10, tzinfo=UTC), NOW)


async def test_who_went_at_a_time_that_cannot_be_read_was_gone_from_the_time_before(lore, tmp_path):
    path = tmp_path / "WhatsApp Chat with team.txt"
    path.write_text(WHATSAPP.replace("01/02/2024, 10:30", "99/99/2024, 10:30"), encoding="utf-8")
    await lore.rooms.set_members("team", [roomlore.Member("Bo", datetime(2024, 1, 1, tzinfo=UTC))])
    await lore.imports.run(path, room_id="team", timezone="UTC")
    (stay,) = (await lore.rooms.people("team")).people["Bo"].stays
    assert stay.left_at == datetime(2024, 2, 1, 10, tzinfo=UTC)
    (first,) = await lore.messages.page("team", viewer="user:Bo")
    assert first.text.startswith("the plan is green")
