"""The verbs that a newcomer needs beside those of other nouns: add a message, and have one answered."""

import uuid
from typing import TYPE_CHECKING, Any

from roomlore.core.intake import MAX_ID_CHARS, MAX_QUERY_CHARS
from roomlore.core.models import AddReport, Message
from roomlore.core.replies.reply import Reply
from roomlore.verbs.table import Argument, Id, Reference, Text, Time, Verb

if TYPE_CHECKING:
    from roomlore.wiring import Lore


def _message(*, room: str, message_id: str | None = None, **said: Any) -> Message:
    return Message(id=message_id or uuid.uuid4().hex, room_id=room, **said)


async def _add(lore: "Lore", _: str | None, **message: Any) -> AddReport:
    return await lore.messages.add(_message(**message))


async def _reply(lore: "Lore", _: str | None, *, agent_id: str, model_id: str | None = None, **message: Any) -> Reply:
    return await lore.replies.reply(_message(**message), agent_id=agent_id, model_id=model_id)


_SAID = (
    Argument(
        "room",
        Reference.NEW_ROOM,
        "The room's id or name, or the id of a new room.",
        "房间 id 或名称，或新房间的 id。",
    ),
    Argument("text", Text(MAX_QUERY_CHARS, blank=False), "What is said.", "说的话。"),
    Argument("sender_id", Id(), "The id of who says it.", "发言者的 id。", "user"),
    Argument(
        "message_id",
        Id(),
        "An id of your own makes the call safe to repeat.",
        "自定的 id，使重复执行不会产生重复。",
        None,
    ),
)
ADD = Verb(
    "add",
    "Add a message to a room, which may be new.",
    "向房间添加一条消息，房间可以是新的。",
    scope="write",
    viewer=False,
    arguments=(
        *_SAID,
        Argument("sender_name", Text(MAX_ID_CHARS), "The name of who says it.", "发言者的名字。", ""),
        Argument("reply_to", Id(), "The id of the message that it answers.", "它回复的消息的 id。", None),
        Argument("sent_at", Time(), "When; by default now.", "时间；默认现在。", None),
    ),
    run=_add,
    answer=AddReport,
    command="add",
)
REPLY = Verb(
    "reply",
    "Store a message and show the reply that a model writes.",
    "保存一条消息，并显示模型写出的回复。",
    scope="write",
    viewer=False,
    arguments=(
        *_SAID,
        Argument("agent_id", Id(), "Who replies.", "由谁回复。", "assistant"),
        Argument(
            "model_id", Id(), "The model; by default the setting reply_model.", "模型；默认为设置 reply_model。", None
        ),
    ),
    run=_reply,
    answer=Reply,
    command="reply",
)
VERBS = (ADD, REPLY)
