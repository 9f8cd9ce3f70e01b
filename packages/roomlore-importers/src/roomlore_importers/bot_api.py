"""Messages of Telegram's Bot API in the form in which Telegram Desktop exports them.

Sources: core.telegram.org/bots/api (Bot API 9.2), and `Telegram/SourceFiles/export` of telegramdesktop/tdesktop.
"""

from collections.abc import Mapping
from typing import Any

from roomlore_importers.shapes import first_name, joined, name, obj, objects, words

_UPDATES = (
    "message", "edited_message", "channel_post", "edited_channel_post", "business_message", "edited_business_message",
)  # fmt: skip
_CONTENTS = (
    "text", "caption", "animation", "audio", "document", "photo", "sticker", "story", "video", "video_note", "voice",
    "contact", "dice", "game", "poll", "venue", "location", "invoice", "paid_media", "giveaway", "giveaway_winners",
    "checklist", "live_photo", "passport_data",
)  # fmt: skip
"""Fields of which one is in every message that somebody wrote."""
_ABOUT = (
    "message_id", "message_thread_id", "direct_messages_topic", "from", "sender_chat", "sender_boost_count",
    "sender_business_bot", "sender_tag", "date", "guest_query_id", "business_connection_id", "chat", "forward_origin",
    "is_topic_message", "is_automatic_forward", "reply_to_message", "external_reply", "quote", "reply_to_story",
    "reply_to_checklist_task_id", "via_bot", "edit_date", "has_protected_content", "is_from_offline",
    "is_paid_post", "media_group_id", "author_signature", "paid_star_count", "entities", "link_preview_options",
    "suggested_post_info", "effect_id", "caption_entities", "show_caption_above_media", "has_media_spoiler",
    "reply_markup", "guest_bot_caller_user", "guest_bot_caller_chat", "reply_to_poll_option_id",
)  # fmt: skip
"""Fields that tell something about a message, and not what happened."""
_ACTIONS = {
    "new_chat_members": "invite_members", "new_chat_member": "invite_members", "left_chat_member": "remove_members",
    "new_chat_title": "edit_group_title", "new_chat_photo": "edit_group_photo",
    "delete_chat_photo": "delete_group_photo", "group_chat_created": "create_group",
    "supergroup_chat_created": "create_channel", "channel_chat_created": "create_channel",
    "message_auto_delete_timer_changed": "set_messages_ttl", "migrate_to_chat_id": "migrate_to_supergroup",
    "migrate_from_chat_id": "migrate_from_group", "pinned_message": "pin_message",
    "successful_payment": "send_payment", "refunded_payment": "refunded_payment", "users_shared": "requested_peer",
    "chat_shared": "requested_peer", "connected_website": "allow_sending_messages",
    "gift": "send_star_gift", "write_access_allowed": "allow_sending_messages",
    "proximity_alert_triggered": "proximity_reached", "boost_added": "boost_apply",
    "chat_background_set": "set_chat_wallpaper", "forum_topic_created": "topic_created",
    "forum_topic_edited": "topic_edit", "forum_topic_closed": "topic_edit", "forum_topic_reopened": "topic_edit",
    "general_forum_topic_hidden": "topic_edit", "general_forum_topic_unhidden": "topic_edit",
    "giveaway_created": "giveaway_launch", "giveaway_completed": "giveaway_results",
    "video_chat_scheduled": "group_call_scheduled", "video_chat_started": "group_call",
    "video_chat_ended": "group_call", "video_chat_participants_invited": "invite_to_group_call",
    "web_app_data": "send_webview_data",
}  # fmt: skip
"""How the export calls what happened, by the field of the Bot API. Another field keeps its name."""
_BY_NOBODY = (
    "successful_payment", "refunded_payment", "web_app_data", "write_access_allowed", "connected_website",
    "giveaway_created", "giveaway_completed",
)  # fmt: skip
"""What has no actor in the export."""
_MEDIA = {
    "animation": "animation", "audio": "audio_file", "voice": "voice_message", "video_note": "video_message",
    "video": "video_file", "sticker": "sticker", "document": "",
}  # fmt: skip
"""The export's `media_type`. An animation is given as a document too: the first counts."""
_STICKERS = {"is_animated": "AnimatedSticker.tgs", "is_video": "sticker.webm"}
"""The names of the files of stickers in exports, which the Bot API leaves out."""
_LEFT_OUT = "(File not included)"
"""What stands for the place of a file in an export without its files."""


def live_message(update: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the message of an update, the update itself if it is a message, None if it holds none, or one whose kind
    the Bot API does not know. python-telegram-bot gives False and empty lists for what is not there."""
    told = obj(next((update[key] for key in _UPDATES if update.get(key)), None)) if "update_id" in update else update
    given = {key: value for key, value in told.items() if value not in (None, False, [], ())}
    return given if given.keys() - set(_ABOUT) or not update else None


def room_of(chat: dict[str, Any]) -> str:
    """Return the id of the chat in an export. The Bot API writes -ID for a group, -100ID for a supergroup or channel;
    a chat with one person gets the id of that person, as a sender has it."""
    own, kind = name(chat.get("id")), words(chat.get("type"))
    if kind == "private":
        return f"user{own}"
    bare = own.removeprefix("-" if kind == "group" else "-100")
    return str(int(bare)) if bare.isdecimal() else bare


def topic_of(told: dict[str, Any], record: dict[str, Any]) -> str | None:
    """Return the topic of a forum as the export tells it: of what is said, pinned or begins a topic."""
    if record.get("action", "pin_message") not in ("pin_message", "topic_created"):
        return None
    own = name(told.get("message_id")) if record.get("action") == "topic_created" else ""
    return first_name(told.get("message_thread_id") if told.get("is_topic_message") is True else "", own) or None


def exported(told: dict[str, Any]) -> dict[str, Any]:
    """Return a message as the export would have it."""
    times = {"date_unixtime": name(told.get("date")), "edited_unixtime": name(told.get("edit_date"))}
    if not told.keys() & set(_CONTENTS):
        what = next((key for key in _ACTIONS if key in told), "") or min(told.keys() - set(_ABOUT))
        actor = {} if what in _BY_NOBODY else _sender(told, "actor")
        return {"type": "service", **times, **actor, **_happened(told, what)}
    return {
        "type": "message",
        **times,
        **_sender(told, "from"),
        "text": _parts(told),
        "reply_to_message_id": obj(told.get("reply_to_message")).get("message_id"),
        "author": told.get("author_signature"),
        "quoted": told.get("quote") and "external_reply" in told and {"text": obj(told["quote"]).get("text")},
        "via_bot": _at(obj(told.get("via_bot")).get("username")),
        **_forward(told),
        **_media(told),
    }


def _at(username: object) -> str:
    return f"@{username}" if isinstance(username, str) and username else ""


def _called(who: object) -> str:
    """Return the name of a person or a chat."""
    about = obj(who)
    return joined((about.get("first_name"), about.get("last_name"))) or words(about.get("title"))


def _sender(told: dict[str, Any], key: str) -> dict[str, Any]:
    """Return who wrote. For an anonymous administrator, a channel and what was forwarded from it that is a chat; the
    person then stands for Telegram itself."""
    chat = obj(told.get("sender_chat"))
    if not chat and "from" not in told:
        chat = obj(told.get("chat"))
    if chat:
        kind = {"group": "chat", "private": "user"}.get(words(chat.get("type")), "channel")
        return {key: _called(chat), f"{key}_id": f"{kind}{room_of(chat).removeprefix('user')}"}
    who = obj(told.get("from"))
    return {key: _called(who), f"{key}_id": f"user{name(who.get('id'))}"}


def _forward(told: dict[str, Any]) -> dict[str, Any]:
    origin = obj(told.get("forward_origin"))
    people = (origin.get(key) for key in ("sender_user", "sender_chat", "chat"))
    whose = next(filter(None, map(_called, people)), "") or words(origin.get("sender_user_name"))
    return {"forwarded_from": whose, "saved_from": whose if told.get("is_automatic_forward") is True else None}


def _parts(told: dict[str, Any]) -> list[Any]:
    """Return the text in parts, as Desktop cuts it: of entities inside each other the outer one counts, of two in one
    place the one that has an address. Offsets count units of UTF-16."""
    key = "text" if "text" in told else "caption"
    units = words(told.get(key)).encode("utf-16-le", "surrogatepass")
    parts: list[Any] = []
    done = 0
    for start, end, entity in sorted(
        _entities(told.get("entities" if key == "text" else "caption_entities")), key=_order
    ):
        if done <= start < end <= len(units) // 2:
            parts += [_decoded(units[2 * done : 2 * start]), _part(_decoded(units[2 * start : 2 * end]), entity)]
            done = end
    return [*parts, _decoded(units[2 * done :])]


def _entities(listed: object) -> list[tuple[int, int, dict[str, Any]]]:
    ranges = ((entity.get("offset"), entity.get("length"), entity) for entity in objects(listed))
    return [(at, at + size, entity) for at, size, entity in ranges if isinstance(at, int) and isinstance(size, int)]


def _order(ranged: tuple[int, int, dict[str, Any]]) -> tuple[int, int, bool]:
    start, end, entity = ranged
    return start, -end, not ("url" in entity or "user" in entity)


def _decoded(units: bytes) -> str:
    return units.decode("utf-16-le", "replace")


def _part(text: str, entity: dict[str, Any]) -> dict[str, Any]:
    who = name(obj(entity.get("user")).get("id"))
    return {
        "type": "mention_name" if who else entity.get("type"),
        "text": text,
        "href": entity.get("url"),
        "user_id": who,
    }


def _media(told: dict[str, Any]) -> dict[str, Any]:
    held: dict[str, Any] = {"photo": _LEFT_OUT} if told.get("photo") or told.get("live_photo") else {}
    kind = next((key for key in _MEDIA if isinstance(told.get(key), dict)), None)
    if kind is not None:
        file = told[kind]
        held |= {key: file.get(key) for key in ("file_name", "performer", "title")}
        held |= {"file": _LEFT_OUT, "media_type": _MEDIA[kind], "sticker_emoji": file.get("emoji")}
        held["mime_type"] = file.get("mime_type")
    if kind == "sticker":
        held["file_name"] = next((named for key, named in _STICKERS.items() if file.get(key) is True), "sticker.webp")
    return held | _about(told)


def _about(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is neither a text nor a file: a poll, a place, a contact, a game, a die."""
    poll, venue, game, dice = (obj(told.get(key)) for key in ("poll", "venue", "game", "dice"))
    place = obj(venue.get("location")) or obj(told.get("location"))
    answers = [{"text": one.get("text"), "voters": one.get("voter_count")} for one in objects(poll.get("options"))]
    held = {
        "poll": {"question": poll.get("question"), "answers": answers} if poll else None,
        "location_information": {key: place.get(key) for key in ("latitude", "longitude")} if place else None,
        "place_name": venue.get("title"),
        "address": venue.get("address"),
        "contact_information": told.get("contact"),
        "game_title": game.get("title"),
        "game_description": game.get("description"),
        "dice": joined((dice.get("emoji"), words(dice.get("value")))),
    }
    return {key: value for key, value in held.items() if value}


def _happened(told: dict[str, Any], field: str) -> dict[str, Any]:
    """Return what happened, with its objects."""
    about = told[field]
    members = about if field.startswith("new_chat_member") else obj(about).get("users", about)
    people = [members] if isinstance(members, dict) else objects(members)
    titles = {
        "new_chat_title": {"title": about},
        "group_chat_created": {"title": obj(told.get("chat")).get("title")},
        "supergroup_chat_created": {"title": obj(told.get("chat")).get("title")},
        "channel_chat_created": {"title": obj(told.get("chat")).get("title")},
        "migrate_from_chat_id": {"title": obj(told.get("chat")).get("title")},
        "forum_topic_created": {"title": obj(about).get("name")},
        "forum_topic_edited": {"new_title": obj(about).get("name")},
        "web_app_data": {"text": obj(about).get("button_text")},
        "pinned_message": {"message_id": obj(about).get("message_id")},
    }
    named = [_called(who) for who in people] if _ACTIONS.get(field, "").endswith(("members", "group_call")) else []
    return {"action": _ACTIONS.get(field, field), **({"members": named} if named else {}), **titles.get(field, {})}
