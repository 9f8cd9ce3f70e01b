"""An import fills what nobody told yet: the kinds of rooms, and who was there when."""

import json
from datetime import UTC, datetime

import pytest

import roomlore
from roomlore.core.audience import RoomKind


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def slack(folder, *, members=("UANN", "UBEN"), listed="groups.json", room_id="G1"):
    """Write an export with a private channel that Ben joined on the second day and Eve left on it."""
    said = {
        "2026-01-01": [
            {"type": "message", "subtype": "channel_join", "user": "UEVE", "ts": "1767258000.000100", "text": "joined"},
            {"type": "message", "user": "UANN", "ts": "1767261600.000100", "text": "the budget is 40k"},
        ],
        "2026-01-02": [
            {"type": "message", "subtype": "channel_join", "user": "UBEN", "ts": "1767344400.000100", "text": "joined"},
            {"type": "message", "subtype": "channel_leave", "user": "UEVE", "ts": "1767344400.000200", "text": "left"},
            {"type": "message", "user": "UBEN", "ts": "1767348000.000100", "text": "hello"},
        ],
    }
    (folder / "plans").mkdir(parents=True)
    for day, messages in said.items():
        (folder / "plans" / f"{day}.json").write_text(json.dumps(messages))
    room = {"id": room_id, "name": "plans", "created": 1767250800, "members": [*members, "UBOT"]}
    (folder / listed).write_text(json.dumps([room]))
    users = [{"id": "UBOT", "is_bot": True, "profile": {}}, {"id": "UANN", "name": "ann", "profile": {}}]
    (folder / "users.json").write_text(json.dumps(users))
    return folder


async def test_slack_tells_members_and_when_they_came(lore, tmp_path):
    report = await lore.imports.run(slack(tmp_path / "export"))
    assert (report.kinds, report.members) == ({"G1": RoomKind.PRIVATE}, {"G1": 2})
    people = (await lore.rooms.people("G1")).people
    assert people.keys() == {"UANN", "UBEN", "UEVE"}
    assert people["UBEN"].stays[0].joined_at == at("2026-01-02T09:00:00.0001")
    assert people["UEVE"].stays[0].left_at == at("2026-01-02T09:00:00.0002")
    first = [roomlore.EvidenceRoom("G1", at("2026-01-01T10:30"), at("2026-01-01T10:30"))]
    await lore.memories.add("user:UANN", "the budget is 40k", evidence=first)
    seen = {who: await lore.memories.search("user:UANN", "budget", viewer=f"user:{who}") for who in ("UANN", "UBEN")}
    assert {who: len(found.hits) for who, found in seen.items()} == {"UANN": 1, "UBEN": 0}


async def test_importing_again_changes_nothing_that_is_known(lore, tmp_path):
    export = slack(tmp_path / "export")
    await lore.imports.run(export)
    before = await lore.rooms.people("G1")
    await lore.imports.run(export)
    assert await lore.rooms.people("G1") == before


async def test_an_import_never_opens_a_room_but_closes_one(lore, tmp_path):
    await lore.rooms.set_kind("G1", "private")
    opened = await lore.imports.run(slack(tmp_path / "public", listed="channels.json"))
    assert opened.kinds == {"G1": RoomKind.PRIVATE}
    await lore.rooms.set_kind("G1", "public")
    closed = await lore.imports.run(slack(tmp_path / "private"))
    assert closed.kinds == {"G1": RoomKind.PRIVATE}
    assert (await lore.rooms.get("G1")).past_kinds == (), "it never was public"


async def test_members_of_an_old_export_do_not_replace_newer_ones(lore, tmp_path):
    await lore.imports.run(slack(tmp_path / "export"))
    sent = at("2026-02-01T09:00")
    await lore.messages.add([roomlore.Message(id="new", room_id="G1", sender_id="UCLEO", text="hi", sent_at=sent)])
    await lore.rooms.set_members("G1", ["UANN", "UBEN", "UCLEO"])
    report = await lore.imports.run(slack(tmp_path / "again", members=("UANN",)))
    assert report.members == {"G1": 3}


async def test_an_import_that_goes_on_knows_who_came_before_it_broke_off(tmp_path):
    export = slack(tmp_path / "export")
    async with roomlore.open("sqlite://", settings=roomlore.Settings(max_batch_messages=2)) as lore:

        def stop(done: int, total: int, messages: int) -> None:
            raise InterruptedError

        with pytest.raises(InterruptedError):
            await lore.imports.run(export, progress=stop)
        report = await lore.imports.run(export)
        assert report.resumed
        stays = (await lore.rooms.people("G1")).people["UEVE"].stays
        assert (stays[0].joined_at, stays[0].left_at) == (
            at("2026-01-01T09:00:00.0001"),
            at("2026-01-02T09:00:00.0002"),
        )


async def test_a_given_room_takes_many_channels_and_no_kind(lore, tmp_path):
    report = await lore.imports.run(slack(tmp_path / "export", listed="channels.json"), room_id="all")
    assert (report.kinds, report.members) == ({"all": None}, {})


async def test_channels_of_one_name_in_two_workspaces_are_two_rooms(lore, tmp_path):
    first, second = slack(tmp_path / "first"), slack(tmp_path / "second", members=("UZOE",), room_id="G9")
    report = await lore.imports.run([first, second])
    assert report.rooms == ("G1", "G9")
    assert report.members == {"G1": 2, "G9": 1}, "nobody left the first because the second does not list them"
    assert [(await lore.rooms.get(room)).title for room in report.rooms] == ["plans", "plans"]
    assert await lore.messages.page("G1")
    assert await lore.messages.page("G9")


async def test_whatsapp_tells_who_came_and_went_by_name(lore, tmp_path):
    lines = [
        "2026-01-01 09:00 - 王芳创建了群组“登山队”",
        "2026-01-01 10:00 - 王芳: 早上七点",
        "2026-01-02 09:00 - 王芳添加了李雷",
        "2026-01-02 10:00 - 李雷: 好",
        "2026-01-03 09:00 - 李雷退出了群组",
    ]
    path = tmp_path / "与登山队的WhatsApp聊天.txt"
    path.write_text("\n".join(line.replace("-01-", "/1/").replace("2026/1/0", "2026/1/") for line in lines))
    report = await lore.imports.run(path, timezone="UTC")
    assert (report.kinds, report.members) == ({"登山队": RoomKind.PRIVATE}, {})
    people = (await lore.rooms.people("登山队")).people
    stay = people["李雷"].stays[0]
    assert (stay.joined_at, stay.left_at) == (at("2026-01-02T09:00"), at("2026-01-03T09:00"))
    assert [(one.joined_at, one.left_at) for one in people["王芳"].stays] == [(at("2026-01-01T09:00"), None)]


async def test_telegram_names_become_ids_and_a_bot_is_an_agent(lore, tmp_path):
    def said(number: int, **more):
        return {"id": number, "type": "message", "date_unixtime": str(1767258000 + 60 * number), "text": "hi"} | more

    group = [
        said(1, type="service", action="invite_members", actor="Ann", actor_id="user1", members=["Ben", "Cleo"]),
        said(2, **{"from": "Ben", "from_id": "user2"}),
        said(3, **{"from": "Cleo", "from_id": "user3"}),
        said(4, **{"from": "Cleo", "from_id": "user4"}),
        said(5, type="service", action="remove_members", actor="Ben", actor_id="user2", members=["Ben"]),
    ]
    bot = [said(1, **{"from": "Ann", "from_id": "user1"}), said(2, **{"from": "Helper", "from_id": "user9"})]
    chats = [
        {"name": "Team", "type": "private_supergroup", "id": 70, "messages": group},
        {"name": "Helper", "type": "bot_chat", "id": 9, "messages": bot},
        {
            "name": "News",
            "type": "public_channel",
            "id": 71,
            "messages": [said(1, **{"from": "News", "from_id": "channel71"})],
        },
    ]
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"personal_information": {"user_id": 1}, "chats": {"list": chats}}))
    report = await lore.imports.run(path)
    assert report.kinds == {"70": RoomKind.PRIVATE, "9": RoomKind.DIRECT, "71": RoomKind.PUBLIC}
    assert report.members == {"9": 1}
    assert (await lore.rooms.people("9")).people.keys() == {"user1"}
    people = (await lore.rooms.people("70")).people
    assert people["user2"].stays[0].left_at == at("2026-01-01T09:05")
    assert not people["user3"].stays, "two people are called Cleo: nobody knows which of them was invited"


@pytest.mark.parametrize(
    ("channel", "kind"),
    [
        ("DirectTextChat", "direct"),
        ("DirectGroupTextChat", "private"),
        ("GuildPrivateThread", "private"),
        ("GuildTextChat", None),
    ],
)
async def test_discord_tells_the_kind_of_chats_outside_servers(lore, tmp_path, channel, kind):
    ann, ben = {"id": "1", "name": "ann"}, {"id": "2", "name": "ben"}
    said = [
        {"id": "10", "type": "Default", "timestamp": "2026-01-01T09:00:00+00:00", "content": "hi", "author": ann},
        {
            "id": "11",
            "type": "RecipientAdd",
            "timestamp": "2026-01-01T10:00:00+00:00",
            "author": ann,
            "mentions": [ben],
        },
        {
            "id": "12",
            "type": "RecipientRemove",
            "timestamp": "2026-01-01T11:00:00+00:00",
            "author": ben,
            "mentions": [ben],
        },
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"channel": {"id": "7", "type": channel}, "messages": said}))
    report = await lore.imports.run(path, format="discord")
    assert report.kinds == {"7": kind and RoomKind(kind)}
    stay = (await lore.rooms.people("7")).people["2"].stays[0]
    assert (stay.joined_at, stay.left_at) == (at("2026-01-01T10:00"), at("2026-01-01T11:00"))


@pytest.mark.parametrize(("chat", "kind"), [("p2p", "direct"), ("group", "private")])
async def test_lark_tells_the_kind_of_a_chat(lore, tmp_path, chat, kind):
    message = {
        "message_id": "om_1", "chat_id": "oc_1", "chat_type": chat, "message_type": "text",
        "create_time": "1767258000000", "content": json.dumps({"text": "你好"}),
    }  # fmt: skip
    path = tmp_path / "lark.jsonl"
    path.write_text(json.dumps({"event": {"sender": {"sender_id": {"open_id": "ou_1"}}, "message": message}}))
    assert (await lore.imports.run(path)).kinds == {"oc_1": RoomKind(kind)}
