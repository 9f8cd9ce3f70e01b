"""The verbs that a newcomer needs beside adding messages and building contexts: remember, ask, reply."""

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roomlore.core.models import Message
from roomlore.core.replies.reply import Reply
from roomlore.core.search.hits import SearchAnswer
from roomlore.services.messages.search import MAX_QUERY_CHARS
from roomlore.verbs.facts import ADD, AddedFact
from roomlore.verbs.messages import ROOM, SEARCH
from roomlore.verbs.table import Argument, Id, Reference, Text, Verb

if TYPE_CHECKING:
    from roomlore.wiring import Lore


async def _remember(lore: "Lore", viewer: str | None, *, about: str, **fact: Any) -> AddedFact:
    added: AddedFact = await ADD(lore, viewer, scope=about, **fact)
    return added


async def _ask(lore: "Lore", viewer: str | None, *, room: str, question: str, limit: int) -> SearchAnswer:
    return await lore.messages.search(room, question, limit=limit, viewer=viewer)


async def _reply(
    lore: "Lore",
    _: str | None,
    *,
    room: str,
    text: str,
    sender_id: str,
    message_id: str | None = None,
    **options: Any,
) -> Reply:
    message = Message(id=message_id or uuid.uuid4().hex, room_id=room, sender_id=sender_id, text=text)
    return await lore.replies.reply(message, **options)


REMEMBER = Verb(
    "remember",
    "Remember one statement about a person, an agent or a group.",
    "记住关于一个人、智能体或群的一句话。",
    scope="write",
    arguments=(
        replace(ADD["scope"], name="about"),
        ADD["statement"],
        ADD["confidence"],
        ADD["valid_until"],
        ADD["memory_id"],
    ),
    run=_remember,
    answer=AddedFact,
    command="remember",
)
ASK = Verb(
    "ask",
    "Find the messages of a room that answer a question, best first, without a model.",
    "在一个房间里找出能回答问题的消息，最好的在前，不用模型。",
    scope="read",
    arguments=(ROOM, replace(SEARCH["query"], name="question"), SEARCH["limit"]),
    run=_ask,
    answer=SearchAnswer,
    command="ask",
)
REPLY = Verb(
    "reply",
    "Store a message and return an agent's reply to it, which a model writes.",
    "保存一条消息，并返回智能体由模型写出的回复。",
    scope="write",
    viewer=False,
    arguments=(
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
        Argument("agent_id", Id(), "Who replies.", "由谁回复。", "assistant"),
        Argument(
            "model_id", Id(), "The model; by default the setting reply_model.", "模型；默认为设置 reply_model。", None
        ),
    ),
    run=_reply,
    answer=Reply,
    command="reply",
)
VERBS = (REMEMBER, ASK, REPLY)
