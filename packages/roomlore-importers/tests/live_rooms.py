"""Conversations written twice: as a bot gets them, and as the platform's export of the same chat has them.

Telegram: core.telegram.org/bots/api (Bot API 9.2); telegramdesktop/tdesktop 006cadcc, `Telegram/SourceFiles/export`:
`output/export_output_json.cpp` and `data/export_data_types.cpp` (`ParseText`).
Discord: docs.discord.com/developers/resources/message; Tyrrrz/DiscordChatExporter 2.47, `JsonMessageWriter.cs`,
`PlainTextMarkdownVisitor.cs`, `PlainTextMessageExtensions.cs`.
Slack: docs.slack.dev/reference/events/message and its subtypes; slackapi/node-slack-sdk `packages/types/src/events`;
slack.com/help/articles/220556107 (exports).
Lark: open.feishu.cn/document/server-docs/im-v1/message/events/receive and .../message/list; larksuite/oapi-sdk-python
1.7.5, `lark_oapi/api/im/v1/model`.
OneBot: botuniverse/onebot-11 `event/message.md`, `event/notice.md`; Mrs4s/go-cqhttp docs, `get_group_msg_history`.
All people and words are made up.
"""

from typing import Any

BEGUN = 1_780_300_000

# Telegram: a forum. The message that opened a topic is `reply_to_message` of whatever in it answers nobody.

_GROUP = {"id": -1001555000111, "type": "supergroup", "title": "Bergfreunde", "is_forum": True}
_ANN = {"id": 11, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "annlee"}
_LI = {"id": 12, "is_bot": False, "first_name": "李雷"}
_TOPIC = {"message_thread_id": 3, "is_topic_message": True}


def _told(number: int, who: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    sender = {"from": who} if who else {}
    return {"message_id": number, "date": BEGUN + number, "chat": _GROUP, **sender, **more}


_OPENING = _told(3, _ANN, **_TOPIC, forum_topic_created={"name": "Hütte", "icon_color": 7322096})
_PICTURES = [{"file_id": "a", "file_unique_id": "b", "width": 90, "height": 60, "file_size": 1000}]
_WORDS = "🏔 hi Bob, see the map and fat words"
TELEGRAM_LIVE = [
    _told(2, _LI, new_chat_members=[_LI], new_chat_member=_LI, new_chat_participant=_LI),
    _OPENING,
    _told(4, _ANN, **_TOPIC, reply_to_message=_OPENING, text=_WORDS, entities=[
        {"type": "text_mention", "offset": 6, "length": 3, "user": {"id": 13, "is_bot": False, "first_name": "Bob"}},
        {"type": "text_link", "offset": 19, "length": 3, "url": "https://maps.example/h"},
        {"type": "bold", "offset": 27, "length": 9},
        {"type": "text_link", "offset": 31, "length": 5, "url": "https://lost.example"},
    ]),
    _told(5, _LI, **_TOPIC, reply_to_message=_told(4, _ANN), text="好", quote={"text": "map", "position": 20}),
    _told(6, _LI, **_TOPIC, reply_to_message=_OPENING, photo=_PICTURES, caption="看", media_group_id="1"),
    _told(7, _LI, **_TOPIC, reply_to_message=_OPENING, photo=_PICTURES, media_group_id="1"),
    _told(8, _ANN, **_TOPIC, reply_to_message=_OPENING, sticker={"emoji": "👍", "is_animated": False}),
    _told(9, _ANN, **_TOPIC, pinned_message=_told(4, _ANN, text=_WORDS)),
    _told(10, {"id": 1087968824, "is_bot": True, "first_name": "Group"}, sender_chat=_GROUP, author_signature="boss",
          text="Read the rules"),
    _told(11, {"id": 777000, "is_bot": False, "first_name": "Telegram"}, is_automatic_forward=True, text="News",
          sender_chat={"id": -1001777, "type": "channel", "title": "Alpennews"},
          forward_origin={"type": "channel", "chat": {"id": -1001777, "type": "channel", "title": "Alpennews"},
                          "message_id": 5, "date": 1}),
    _told(12, _ANN, text="look", forward_origin={"type": "hidden_user", "sender_user_name": "Mia", "date": 1}),
    _told(13, _ANN, poll={"id": "1", "question": "When?", "options": [{"text": "Sa", "voter_count": 0}]}),
    _told(14, _ANN, text="elsewhere", external_reply={"origin": {"type": "hidden_user"}, "message_id": 7},
          via_bot={"id": 5, "is_bot": True, "first_name": "Gif", "username": "gif"}),
    _told(15, _LI, document={"file_id": "d", "file_name": "plan.pdf", "mime_type": "application/pdf"}),
    _told(16, _LI, voice={"file_id": "v", "duration": 3, "mime_type": "audio/ogg"}),
    _told(17, _LI, left_chat_member=_LI),
    _told(18, _ANN, **_TOPIC, forum_topic_edited={"name": "Hütten"}),
    _told(19, _ANN, new_chat_title="Berge"),
    _told(20, _ANN, venue={"location": {"latitude": 47.1, "longitude": 11.2}, "title": "Alm", "address": "Weg 1"}),
]  # fmt: skip
TELEGRAM_EDIT = {**_told(5, _LI, **_TOPIC, reply_to_message=_told(4, _ANN), text="好的"), "edit_date": BEGUN + 90}


def _exported(number: int, who: str, who_id: str, **more: Any) -> dict[str, Any]:
    at = str(BEGUN + number)
    people = {"actor": who, "actor_id": who_id} if "action" in more else {"from": who, "from_id": who_id}
    kind = "service" if "action" in more else "message"
    return {
        "id": number,
        "type": kind,
        "date": "2026-06-01T09:46:40",
        "date_unixtime": at,
        "text": "",
        **people,
        **more,
    }


_BY_ANN, _BY_LI = ("Ann Lee", "user11"), ("李雷", "user12")
_NO_FILE = "(File not included. Change data exporting settings to download.)"
TELEGRAM_EXPORT = {"name": "Bergfreunde", "type": "private_supergroup", "id": 1555000111, "messages": [
    _exported(2, *_BY_LI, action="invite_members", members=["李雷"]),
    _exported(3, *_BY_ANN, action="topic_created", title="Hütte"),
    _exported(4, *_BY_ANN, reply_to_message_id=3, text=[
        "🏔 hi ", {"type": "mention_name", "text": "Bob", "user_id": 13}, ", see the ",
        {"type": "text_link", "text": "map", "href": "https://maps.example/h"}, " and ",
        {"type": "bold", "text": "fat words"},
    ], reactions=[{"type": "emoji", "count": 2, "emoji": "👍"}]),
    _exported(5, *_BY_LI, reply_to_message_id=4, text="好的", edited_unixtime=str(BEGUN + 90)),
    _exported(6, *_BY_LI, reply_to_message_id=3, photo="photos/photo_1@01-06-2026_09-46-46.jpg", text="看"),
    _exported(7, *_BY_LI, reply_to_message_id=3, photo=_NO_FILE),
    _exported(8, *_BY_ANN, reply_to_message_id=3, file="stickers/s.webp", media_type="sticker", sticker_emoji="👍"),
    _exported(9, *_BY_ANN, action="pin_message", message_id=4),
    _exported(10, "Bergfreunde", "channel1555000111", author="boss", text="Read the rules"),
    _exported(11, "Alpennews", "channel1777", forwarded_from="Alpennews", saved_from="Alpennews", text="News"),
    _exported(12, *_BY_ANN, forwarded_from="Mia", text="look"),
    _exported(13, *_BY_ANN, poll={"question": "When?", "closed": False, "total_voters": 1, "answers": [
        {"text": "Sa", "voters": 1, "chosen": False}]}),
    _exported(14, *_BY_ANN, reply_to_message_id=7, reply_to_peer_id="channel99", via_bot="@gif", text="elsewhere"),
    _exported(15, *_BY_LI, file=_NO_FILE, file_name="plan.pdf", mime_type="application/pdf"),
    _exported(16, *_BY_LI, file="voice_messages/audio_1@01-06-2026_09-46-56.ogg", media_type="voice_message",
              mime_type="audio/ogg", duration_seconds=3),
    _exported(17, *_BY_LI, action="remove_members", members=["李雷"]),
    _exported(18, *_BY_ANN, action="topic_edit", new_title="Hütten"),
    _exported(19, *_BY_ANN, action="edit_group_title", title="Berge"),
    _exported(20, *_BY_ANN, place_name="Alm", address="Weg 1",
              location_information={"latitude": 47.1, "longitude": 11.2}),
]}  # fmt: skip

# Discord: the gateway has ids where the exporter writes names.

_GLOVES, _STAMP = "7001", "2026-06-01T08:{:02}:00.250000+00:00"
DISCORD_NAMES = {"7005": "huts", "77": "guides", "900": "Ann the guide"}


def _gateway(number: int, who: tuple[str, str, str], content: str = "", **more: Any) -> dict[str, Any]:
    own_id, username, shown = who
    return {
        "id": str(number), "channel_id": _GLOVES, "guild_id": "1", "type": 0, "content": content, "pinned": False,
        "timestamp": _STAMP.format(number), "edited_timestamp": None, "mentions": [], "mention_roles": [],
        "attachments": [], "embeds": [],
        "author": {"id": own_id, "username": username, "global_name": shown, "discriminator": "0"}, **more,
    }  # fmt: skip


_DANN, _DLI, _DBOT = ("900", "ann", "Ann"), ("901", "lilei", "李雷"), ("902", "helper", "")
_MENTIONED = {"id": "900", "username": "ann", "global_name": "Ann", "member": {"nick": "Ann the guide"}}
_SNAPSHOT = {
    "content": "I lost a <:glove:55>",
    "attachments": [{"id": "1", "filename": "glove.jpg", "url": "https://c.example/g?ex=1"}],
}
_EMBED = {
    "type": "rich",
    "title": "Hut",
    "description": "closed, says <@900>",
    "fields": [{"name": "day", "value": "Monday"}],
}
DISCORD_LIVE = [
    _gateway(10, _DANN, "hi <@&77>, see <#7005> <a:wave:12> @everyone <3 a@b.example", member={"nick": "Ann the guide"},
             mention_roles=["77"], mention_everyone=True),
    _gateway(11, _DLI, "thanks <@!900>", type=19, mentions=[_MENTIONED],
             message_reference={"type": 0, "message_id": "10", "channel_id": _GLOVES}),
    _gateway(12, _DLI, "gone", type=19, referenced_message=None,
             message_reference={"message_id": "5", "channel_id": _GLOVES}),
    _gateway(13, _DLI, message_reference={"type": 1, "message_id": "3", "channel_id": "7009"},
             message_snapshots=[{"message": _SNAPSHOT}]),
    _gateway(14, _DANN, type=6, member={"nick": "Ann the guide"},
             message_reference={"message_id": "10", "channel_id": _GLOVES}),
    _gateway(15, ("903", "tom", "Tom"), type=7),
    _gateway(16, ("903", "tom", "Tom"), type=8),
    _gateway(17, _DLI, "Lost glove", type=18, message_reference={"channel_id": "17"}),
    _gateway(18, _DLI, sticker_items=[{"id": "749", "name": "Wave", "format_type": 3}]),
    _gateway(19, _DBOT, "", embeds=[_EMBED], type=20, interaction={"id": "1", "name": "hut", "user": {}})
    | {"author": {"id": "902", "username": "helper", "bot": True, "global_name": None}},
    _gateway(20, _DLI, poll={"question": {"text": "When?"}, "answers": [{"poll_media": {"text": "Sa"}}]}),
    _gateway(21, _DLI, "was edited", edited_timestamp="2026-06-01T09:00:00+00:00"),
]  # fmt: skip


def _dce(number: int, who: tuple[str, str, str], content: str, **more: Any) -> dict[str, Any]:
    author = {"id": who[0], "name": who[1], "discriminator": "0000", "nickname": who[2], "isBot": False}
    return {
        "id": str(number), "type": "Default", "timestamp": f"2026-06-01T10:{number:02}:00.25+02:00",
        "timestampEdited": None, "callEndedTimestamp": None, "isPinned": False, "content": content, "author": author,
        "attachments": [], "embeds": [], "stickers": [], "reactions": [], "mentions": [], "inlineEmojis": [], **more,
    }  # fmt: skip


def _reference(kind: str, message: str | None, channel: str) -> dict[str, Any]:
    return {"type": kind, "messageId": message, "channelId": channel, "guildId": "1"}


_GUIDE = ("900", "ann", "Ann the guide")
DISCORD_EXPORT = {
    "guild": {"id": "1", "name": "Hikers"}, "channel": {"id": _GLOVES, "type": "GuildTextChat", "name": "trips"},
    "messages": [
        _dce(10, _GUIDE, "hi @guides, see #huts :wave: @everyone <3 a@b.example", isPinned=True,
             reactions=[{"emoji": {"id": "", "name": "👋"}, "count": 1}]),
        _dce(11, _DLI, "thanks @Ann the guide", type="Reply", reference=_reference("Default", "10", _GLOVES),
             mentions=[{"id": "900", "name": "ann", "nickname": "Ann the guide", "isBot": False}]),
        _dce(12, _DLI, "gone", type="Reply", reference=_reference("Default", "5", _GLOVES)),
        _dce(13, _DLI, "", reference=_reference("Forward", "3", "7009"), forwardedMessage={
            "content": "I lost a :glove:", "embeds": [], "stickers": [],
            "attachments": [{"id": "1", "url": "https://c.example/g?ex=2", "fileName": "glove.jpg"}]}),
        _dce(14, _GUIDE, "Pinned a message.", type="ChannelPinnedMessage",
             reference=_reference("Default", "10", _GLOVES)),
        _dce(15, ("903", "tom", "Tom"), "Joined the server.", type="GuildMemberJoin"),
        _dce(16, ("903", "tom", "Tom"), "", type="8"),
        _dce(17, _DLI, "Started a thread.", type="ThreadCreated", reference=_reference("Default", None, "17")),
        _dce(18, _DLI, "", stickers=[{"id": "749", "name": "Wave", "format": "Lottie", "sourceUrl": "s/749.json"}]),
        _dce(19, _DBOT, "", type="20", embeds=[{"title": "Hut", "description": "closed, says @Ann the guide",
             "fields": [{"name": "day", "value": "Monday"}]}])
        | {"author": {"id": "902", "name": "helper", "nickname": "helper", "isBot": True}},
        _dce(20, _DLI, ""),
        _dce(21, _DLI, "was edited", timestampEdited="2026-06-01T11:00:00+02:00"),
    ],
}  # fmt: skip

# Slack: events and exports have the same wire text; an export has the names in a file beside it.

SLACK_USERS = {
    "U1": {"id": "U1", "name": "ann", "profile": {"real_name": "Ann Lee", "display_name": "Ann"}},
    "U2": {"id": "U2", "name": "lilei", "profile": {"real_name": "李雷", "display_name": ""}},
    "U9": {"id": "U9", "name": "lore", "is_bot": True, "profile": {"real_name": "Lore"}},
}
SLACK_CHANNELS = {
    "C500": {"id": "C500", "name": "trips", "members": ["U1", "U2"]},
    "C501": {"id": "C501", "name": "huts", "members": []},
}


def _slack(number: int, who: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": who, "text": text, "ts": f"{BEGUN + number}.000100", **more}


_ROOT, _FILE = f"{BEGUN + 1}.000100", {"id": "F1", "name": "map.png", "title": "The map", "mimetype": "image/png"}
SLACK_RICH = [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
    {"type": "text", "text": "paint it "}, {"type": "color", "value": "#FF8800"}, {"type": "text", "text": " < "},
    {"type": "user", "user_id": "U1"}, {"type": "date", "timestamp": BEGUN, "format": "{date_num}"}]}]}]  # fmt: skip
SLACK_EXPORT = [
    _slack(1, "U1", "a &lt;b&gt; &amp; <@U2>: <https://huts.example|the huts> <#C501|> <!here> <!date^1^{date}|1 June>",
           reply_count=1, reactions=[{"name": "wave", "count": 1, "users": ["U2"]}]),
    _slack(2, "U2", "<!subteam^S1|@guides> 好", thread_ts=_ROOT, parent_user_id="U1"),
    _slack(3, "U2", "<@U2> has joined the channel", subtype="channel_join"),
    _slack(4, "U1", "", files=[_FILE], upload=True),
    _slack(5, "U2", "also here", subtype="thread_broadcast", thread_ts=_ROOT),
    _slack(6, "U1", "waves", subtype="me_message"),
    {**_slack(7, "", "<https://ci.example/7|#7> failed", subtype="bot_message"), "bot_id": "B1", "username": "CI"},
    _slack(8, "U9", "", bot_id="B9", blocks=SLACK_RICH),
    _slack(9, "U2", "new words", edited={"user": "U2", "ts": f"{BEGUN + 60}.000000"}),
]  # fmt: skip
_ONLY_IN_EXPORTS = ("reply_count", "reactions", "upload", "edited")


def _as_event(message: dict[str, Any]) -> dict[str, Any]:
    event = {key: value for key, value in message.items() if key not in _ONLY_IN_EXPORTS}
    shared = {"subtype": "file_share"} if "files" in message else {}
    event |= {"channel": "C500", "channel_type": "channel", "event_ts": message["ts"], **shared}
    return {
        "type": "event_callback",
        "event_id": "Ev1",
        "event": event | ({"text": "old words"} if "edited" in message else {}),
    }


SLACK_LIVE = [_as_event(message) for message in SLACK_EXPORT]
SLACK_EDIT = {"type": "message", "subtype": "message_changed", "hidden": True, "channel": "C500",
              "ts": f"{BEGUN + 61}.000200", "message": SLACK_EXPORT[-1], "previous_message": {}}  # fmt: skip

# Lark: the list gives one id, the event three, for the same person.

_PEOPLE = [(f"@_user_{number}", f"ou_{number}", f"组员{number}") for number in range(1, 11)]
_TALK = [
    ("om_1", "text", {"text": f"{' '.join(key for key, *_ in reversed(_PEOPLE))}0 @_all 出发"}, _PEOPLE, {}),
    ("om_2", "post", {"title": "菜单", "content": [[
        {"tag": "at", "user_id": "@_user_1", "user_name": "组员1", "style": []}, {"tag": "text", "text": " 绿茶 "},
        {"tag": "a", "text": "menu", "href": "https://menu.example"}]]}, _PEOPLE[:1],
     {"parent_id": "om_1", "root_id": "om_1"}),
    ("om_3", "image", {"image_key": "img_1"}, [], {"thread_id": "omt_1"}),
    ("om_4", "file", {"file_key": "f_1", "file_name": "路线.pdf"}, [], {}),
]  # fmt: skip


def _lark_event(own_id: str, kind: str, content: str, people: list[Any], more: dict[str, str]) -> dict[str, Any]:
    mentions = [{"key": key, "id": {"open_id": who, "union_id": f"on_{who}", "user_id": ""}, "name": called,
                 "tenant_key": "t"} for key, who, called in people]  # fmt: skip
    message = {"message_id": own_id, "chat_id": "oc_1", "chat_type": "group", "message_type": kind, "content": content,
               "create_time": f"{BEGUN}{own_id[-1]}00", "mentions": mentions, **more}  # fmt: skip
    sender = {"sender_id": {"union_id": "on_a", "user_id": "", "open_id": "ou_ann"}, "sender_type": "user"}
    return {
        "schema": "2.0",
        "header": {"event_type": "im.message.receive_v1"},
        "event": {"sender": sender, "message": message},
    }


def _lark_item(own_id: str, kind: str, content: str, people: list[Any], more: dict[str, str]) -> dict[str, Any]:
    mentions = [{"key": key, "id": who, "id_type": "open_id", "name": called} for key, who, called in people]
    return {"message_id": own_id, "msg_type": kind, "create_time": f"{BEGUN}{own_id[-1]}00", "deleted": False,
            "updated": False, "chat_id": "oc_1", "body": {"content": content}, "mentions": mentions, **more,
            "sender": {"id": "ou_ann", "id_type": "open_id", "sender_type": "user", "tenant_key": "t"}}  # fmt: skip


def lark(as_json: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the events, and the answer of the list of messages. `as_json` writes a content as text."""
    told = [(own_id, kind, as_json(content), people, more) for own_id, kind, content, people, more in _TALK]
    return [_lark_event(*each) for each in told], {"code": 0, "data": {"items": [_lark_item(*each) for each in told]}}


# OneBot: a log of the same bot, and the history that it can ask for.


def _onebot(number: int, user: int, *segments: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "time": BEGUN + number, "self_id": 900, "post_type": "message", "message_type": "group", "sub_type": "normal",
        "message_id": number, "group_id": 700, "user_id": user, "anonymous": None, "font": 0, "raw_message": "",
        "message": [{"type": kind, "data": data} for kind, data in segments],
        "sender": {"user_id": user, "nickname": f"n{user}", "card": "领队" if user == 1 else ""}, **more,
    }  # fmt: skip


_PICTURE = {"file": "a.jpg", "url": "https://q.example/a?rkey=1"}
ONEBOT_LIVE = [
    _onebot(1, 1, ("text", {"text": "周六 & [去]？"})),
    _onebot(2, 2, ("reply", {"id": "1"}), ("at", {"qq": "1"}), ("text", {"text": " 去"})),
    _onebot(3, 2, ("at", {"qq": "900"}), ("text", {"text": "几点？"})),
    _onebot(4, 2, ("image", _PICTURE)),
    _onebot(5, 1, ("at", {"qq": "all"}), ("text", {"text": " 集合"})),
    _onebot(6, 900, ("text", {"text": "八点"}), post_type="message_sent", target_id=700),
    {"time": BEGUN + 7, "self_id": 900, "post_type": "notice", "notice_type": "group_increase", "sub_type": "approve",
     "group_id": 700, "operator_id": 1, "user_id": 3},
    {"time": BEGUN + 8, "self_id": 900, "post_type": "notice", "notice_type": "group_decrease", "sub_type": "kick",
     "group_id": 700, "operator_id": 1, "user_id": 3},
]  # fmt: skip
ONEBOT_EXPORT = [
    {**event, **({"post_type": "message", "message": [{"type": "image", "data": {**_PICTURE, "url": "https://q.example/a?rkey=2"}}]}
     if event.get("message_id") == 4 else {})}
    for event in ONEBOT_LIVE
]  # fmt: skip
