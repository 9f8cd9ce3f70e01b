"""What a bot gets and what an export of the same chat has are one conversation, whichever comes first."""

import json
import warnings
from datetime import UTC, datetime
from functools import partial

import live_rooms as rooms
import pytest

import roomlore
from roomlore.core.errors import InvalidInput
from roomlore_importers import discord_message, lark_message, onebot_message, slack_message, telegram_message
from roomlore_testkit.case_table import all_cases

AT = datetime.fromtimestamp(rooms.BEGUN, UTC)


def _written(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def _slack_export(folder):
    _written(folder / "channels.json", list(rooms.SLACK_CHANNELS.values()))
    _written(folder / "users.json", list(rooms.SLACK_USERS.values()))
    _written(folder / "trips" / "2026-06-01.json", rooms.SLACK_EXPORT)
    return folder


LARK_EVENTS, LARK_LIST = rooms.lark(partial(json.dumps, ensure_ascii=False))
SLACK = partial(slack_message, users=rooms.SLACK_USERS, channels=rooms.SLACK_CHANNELS)
CHATS = {
    "telegram": (telegram_message, rooms.TELEGRAM_LIVE, rooms.TELEGRAM_EDIT, rooms.TELEGRAM_EXPORT),
    "discord": (partial(discord_message, names=rooms.DISCORD_NAMES), rooms.DISCORD_LIVE, None, rooms.DISCORD_EXPORT),
    "slack": (SLACK, rooms.SLACK_LIVE, rooms.SLACK_EDIT, None),
    "lark": (lark_message, LARK_EVENTS, None, LARK_LIST),
    "onebot": (onebot_message, rooms.ONEBOT_LIVE, None, rooms.ONEBOT_EXPORT),
}


def _edited_at(event):
    return event["edit_date"] if "edit_date" in event else event["message"]["edited"]["ts"]


def _stored(lore, room):
    entries = (lore.messages.get(room, message.id) for message in lore.messages.page(room, limit=100))
    return [
        (entry.message.id, entry.message.text, entry.message.reply_to, entry.message.topic_id, entry.message.root_id,
         entry.message.mentions, entry.message.role, entry.message.sender_name, entry.link.kind, entry.link.parent)
        for entry in entries
    ]  # fmt: skip


@pytest.fixture(params=CHATS)
def chat(request, tmp_path):
    """Return the parser, the events, the edit and the export of a platform."""
    parse, live, edit, export = CHATS[request.param]
    path = _slack_export(tmp_path / "slack") if export is None else _written(tmp_path / "result.json", export)
    return parse, live, edit, path


def test_an_export_has_nothing_new_for_who_heard_it_all(chat):
    parse, live, edit, path = chat
    with roomlore.open_sync("sqlite://", background=False) as lore:
        for event in live:
            lore.messages.add(parse(event))
        if edit:
            now = parse(edit)
            lore.messages.edit(now.room_id, now.id, text=now.text, mentions=now.mentions, edited_at=_edited_at(edit))
        heard = _stored(lore, parse(live[0]).room_id)
        report = lore.imports.run(path)
        assert report.conflicts == ()
        assert (report.added, report.duplicates, report.bad_count) == (0, len(live), 0)
        assert _stored(lore, parse(live[0]).room_id) == heard


def test_who_read_the_export_hears_nothing_new(chat):
    """What was edited meanwhile comes as it is now."""
    parse, live, edit, path = chat
    now = [parse(edit) if edit and parse(event).id == parse(edit).id else parse(event) for event in live]
    with (
        roomlore.open_sync("sqlite://", background=False) as read,
        roomlore.open_sync("sqlite://", background=False) as heard,
    ):
        assert read.imports.run(path).added == len(live)
        for message in now:
            heard.messages.add(message)
        assert _stored(read, now[0].room_id) == _stored(heard, now[0].room_id)
        report = read.messages.add(now)
        assert (report.added, report.duplicates) == ((), tuple(message.id for message in now))


WHO, GROUP = {"id": 11, "is_bot": False, "first_name": "Ann"}, {"id": -1001234, "type": "supergroup", "title": "Tea"}
SAID = {"message_id": 7, "date": rooms.BEGUN, "chat": GROUP, "from": WHO}
TOPIC = {"message_thread_id": 3, "is_topic_message": True}
TELEGRAM = [
    ({"update_id": 1, "callback_query": {"id": "1"}}, None),
    ({"update_id": 1, "message": SAID}, None),  # of a kind that the Bot API does not know
    ({"update_id": 1, "channel_post": {**SAID, "from": None, "sender_chat": GROUP, "text": "hi"}},
     {"sender_id": "channel1234", "sender_name": "Tea", "text": "hi", "role": "user"}),
    ({**SAID, "video_chat_started": {}}, {"text": "group call", "role": "system", "sender_id": "user11"}),
    ({**SAID, "something_new": {"x": 1}}, {"text": "something new", "role": "system"}),
    ({**SAID, **TOPIC, "forum_topic_closed": {}}, {"text": "topic edit", "role": "system", "topic_id": None}),
    ({**SAID, "text": "a", "message_thread_id": 3, "reply_to_message": {"message_id": 3}},
     {"reply_to": "3", "topic_id": None}),  # a thread of replies is no topic
    ({**SAID, **TOPIC, "text": "a", "reply_to_message": {"message_id": 3}}, {"reply_to": None, "topic_id": "3"}),
    ({**SAID, "text": "𝒳 you", "entities": [{"type": "text_link", "offset": 3, "length": 3, "url": "https://e.example"},
                                            {"type": "bold", "offset": 3, "length": 99}, {"type": "bold"}]},
     {"text": "𝒳 you (https://e.example)"}),
    ({**SAID, "text": "you", "entities": [{"type": "bold", "offset": 0, "length": 3},
                                          {"type": "text_link", "offset": 0, "length": 3, "url": "https://e.example"}]},
     {"text": "you (https://e.example)"}),
    ({**SAID, "dice": {"emoji": "🎲", "value": 4}}, {"text": "", "role": "user"}),
    ({**SAID, "chat": {"id": 11, "type": "private", "first_name": "Ann"}, "text": "hi"}, {"room_id": "user11"}),
    ({**SAID, "location": {"latitude": 1.5, "longitude": 2.5}}, {"text": ""}),
    ({**SAID, "pinned_message": {"message_id": 3, "date": 0, "chat": GROUP}}, {"text": "pin message", "reply_to": "3"}),
]  # fmt: skip
GLOVE = {"id": "9", "channel_id": "7", "type": 0, "content": "hi", "timestamp": "2026-06-01T08:00:00+00:00",
         "author": {"id": "1", "username": "ann", "global_name": "Ann"}}  # fmt: skip
DISCORD = [
    ({"t": "TYPING_START", "d": {"channel_id": "7"}}, None),
    ({"t": "MESSAGE_CREATE", "op": 0, "d": GLOVE}, {"id": "9", "text": "hi", "sender_name": "Ann"}),
    ({"id": "9", "channel_id": "7", "embeds": []}, None),  # an update of a preview
    ({**GLOVE, "type": 21, "content": "", "message_reference": {"message_id": "5", "channel_id": "6"}}, None),
    ({**GLOVE, "type": 3, "call": {"ended_timestamp": "2026-06-01T08:02:30+00:00"}},
     {"text": "Started a call that lasted 3 minutes.", "role": "system"}),
    ({**GLOVE, "type": 1, "mentions": [{"id": "2", "username": "li"}]}, {"text": "Added li to the group."}),
    ({**GLOVE, "type": 2, "mentions": [{"id": "1", "username": "ann"}]}, {"text": "Left the group."}),
    ({**GLOVE, "type": 4, "content": "gloves"}, {"text": "Changed the channel name: gloves"}),
    ({**GLOVE, "content": "<t:1780300000:R> <@5> @1234567890123456789"},
     {"text": "2026-06-01 07:46 UTC <@5> @1234567890123456789"}),
    ({**GLOVE, "author": {"id": "3", "username": "Hook", "bot": True}}, {"role": "assistant", "sender_name": "Hook"}),
]  # fmt: skip
SLACK_EVENT = {"type": "message", "channel": "C500", "ts": f"{rooms.BEGUN}.000100", "user": "U1", "text": "hi"}
SLACK_EVENTS = [
    ({"type": "reaction_added", "user": "U1"}, None),
    ({**SLACK_EVENT, "subtype": "message_deleted", "deleted_ts": "1.0"}, None),
    ({"payload": {"event": {**SLACK_EVENT, "type": "app_mention", "text": "<@U9> hi"}}},
     {"text": "@Lore hi", "mentions": ("U9",), "sender_name": "Ann", "role": "user"}),
    ({**SLACK_EVENT, "user": "U9"}, {"role": "assistant"}),
    ({**SLACK_EVENT, "text": "<#C501|> <!everyone> &amp;lt; <mailto:a@b.example|a@b.example>"},
     {"text": "#huts @everyone &lt; a@b.example"}),
    ({**SLACK_EVENT, "subtype": "message_changed", "message": {**SLACK_EVENT, "text": "", "subtype": "tombstone"}},
     {"text": "", "metadata": {"deleted": True}}),
    ({**SLACK_EVENT, "text": "", "blocks": rooms.SLACK_RICH}, {"text": "paint it #FF8800 < @Ann2026-06-01 07:46 UTC"}),
]  # fmt: skip
LARK = [
    ({"header": {"event_type": "im.message.recalled_v1"}, "event": {"message_id": "om_1", "chat_id": "oc_1"}}, None),
    (LARK_EVENTS[0], {"text": "@组员10 @组员9 @组员8 @组员7 @组员6 @组员5 @组员4 @组员3 @组员2 @组员10 @所有人 出发"}),
]
ONEBOT = [
    ({"post_type": "meta_event", "meta_event_type": "heartbeat", "self_id": 900}, None),
    ({"post_type": "request", "request_type": "friend", "user_id": 1}, None),
    ({"post_type": "notice", "notice_type": "notify", "sub_type": "poke", "group_id": 7, "user_id": 1}, None),
    ({"post_type": "notice", "notice_type": "group_recall", "group_id": 7, "user_id": 1, "message_id": 5},
     {"text": "撤回了一条消息", "role": "system"}),
]  # fmt: skip


def _odd():
    tables = {telegram_message: TELEGRAM, partial(discord_message): DISCORD, SLACK: SLACK_EVENTS}
    for parse, table in {**tables, lark_message: LARK, onebot_message: ONEBOT}.items():
        yield from ((parse, event, wanted) for event, wanted in table)


def test_odd_events():
    with all_cases() as case:
        for parse, event, wanted in _odd():
            with case(event):
                message = parse(event)
                seen = message and {key: getattr(message, key) for key in wanted or {}}
                assert seen == wanted


@pytest.mark.parametrize("parse", [telegram_message, discord_message, slack_message, lark_message, onebot_message])
def test_what_is_no_event_at_all_is_refused(parse):
    for event in ({}, 1, "x", None):
        with pytest.raises(InvalidInput, match="give a"):
            parse(event)


def test_slack_names_come_from_answers_objects_or_names():
    event = {"type": "message", "channel": "C1", "user": "U1", "ts": "1780300000.000100", "text": "hi <@U1> <#C1>"}
    person = {"id": "U1", "name": "ann", "profile": {"display_name": "Ann"}}
    given = [
        ({"ok": True, "user": person}, {"ok": True, "channel": {"name": "tea"}}), (person, {"name": "tea"}),
        ("Ann", "tea"),
    ]  # fmt: skip
    messages = [slack_message(event, {"U1": user}, {"C1": channel}) for user, channel in given]
    assert [(message.sender_name, message.text) for message in messages] == [("Ann", "hi @Ann #tea")] * 3


def test_a_quoted_word_of_another_chat_is_kept_beside_the_text():
    message = telegram_message({**SAID, "text": "no", "external_reply": {"message_id": 5}, "quote": {"text": "tea?"}})
    assert (message.reply_to, message.metadata) == (None, {"quoted": {"text": "tea?"}})


def test_a_poll_of_discord_is_kept():
    poll = {"question": {"text": "When?"}, "answers": [{"poll_media": {"text": "Sa"}}, {"poll_media": {"text": "So"}}]}
    [attachment] = discord_message({**GLOVE, "content": "", "poll": poll}).metadata["attachments"]
    assert attachment == {"type": "poll", "name": "When?", "caption": "Sa, So"}


def test_an_object_of_discord_py_gives_what_its_json_gives():
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # it imports audioop
        import discord
    role = {"id": "77", "name": "guides", "permissions": "0", "position": 1, "color": 0, "hoist": False,
            "managed": False, "mentionable": True,
            "colors": dict.fromkeys(("primary_color", "secondary_color", "tertiary_color"), 0)}  # fmt: skip
    channels = [{"id": own, "type": kind, "name": name, "position": 0, "user_limit": 0, "bitrate": 1}
                for own, kind, name in (("7001", 0, "trips"), ("7005", 2, "huts"))]  # fmt: skip
    state = discord.Client(intents=discord.Intents.none())._connection
    guild = discord.Guild(state=state, data={"id": "1", "name": "Hikers", "roles": [role], "channels": channels})
    own_id = str(discord.utils.time_snowflake(datetime(2026, 6, 1, 8, tzinfo=UTC)))
    rest = {"tts": False, "mention_everyone": False, "flags": 0, "components": [], "id": own_id,
            "timestamp": "2026-06-01T08:00:00+00:00"}  # fmt: skip
    bare = {"discriminator": "0", "avatar": None}
    nick = {"nick": "Ann the guide", "roles": [], "joined_at": None, "deaf": False, "mute": False, "flags": 0}
    snapshot = {"type": 0, "embeds": [], "timestamp": rest["timestamp"], "edited_timestamp": None, "content": "a",
                "attachments": [{"id": "1", "filename": "g.jpg", "url": "u", "size": 1, "proxy_url": ""}]}  # fmt: skip
    told = [
        rooms.DISCORD_LIVE[0] | {"content": "<@&77> <#7005> @7000000000000000001 <@900>", "member": nick,
                                 "mentions": [{"id": "900", "username": "ann", **bare, "member": nick}]},
        rooms.DISCORD_LIVE[3] | {"message_snapshots": [{"message": snapshot}]},
        rooms.DISCORD_LIVE[1] | {"mentions": []},
    ]  # fmt: skip
    names = {"7005": "huts [voice]", "77": "guides", "900": "Ann the guide"}
    texts = []
    for event in ({**event, **rest, "author": {**event["author"], **bare}} for event in told):
        held = discord.Message(state=state, channel=guild.get_channel(7001), data=event)
        assert discord_message(held) == discord_message(event, names if event["mentions"] else None)
        texts.append(discord_message(held).text)
    assert texts == ["@guides #huts [voice] @7000000000000000001 @Ann the guide", "", "thanks <@!900>"]
