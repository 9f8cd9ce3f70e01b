"""The verbs of rooms: what they are called, what happened in them, and how far people have read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from roomlore.core.digest.digest import DIGEST_TOKENS, FEWEST_TOKENS, MAX_TOKENS, Digest
from roomlore.core.evolution.requests import Mode
from roomlore.core.intake import MAX_ROOM_NAME
from roomlore.core.models import Room
from roomlore.verbs.table import Argument, Choice, Id, Moment, Reference, Verb, Whole

if TYPE_CHECKING:
    from roomlore.wiring import Lore


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMark:
    """The reading mark of a person in a room. `read_up_to`: the arrival of the last message marked as read."""

    room_id: str
    user_id: str
    read_up_to: int


async def _rename(lore: "Lore", viewer: str | None, *, room: str, name: str) -> Room:
    await lore.rooms.check_shown(room, viewer)
    return await lore.rooms.rename(room, name)


async def _read(lore: "Lore", viewer: str | None, *, room: str, user_id: str, **until: str) -> ReadMark:
    await lore.rooms.check_shown(room, viewer)
    arrival = await lore.rooms.mark_read(room, user_id, **until)
    return ReadMark(room_id=room, user_id=user_id, read_up_to=arrival)


async def _digest(lore: "Lore", viewer: str | None, *, room: str, **wanted: Any) -> Digest:
    return await lore.digest(room, viewer=viewer, **wanted)


_ROOM = Argument("room", Reference.ROOM, "The room's id or name.", "房间 id 或名称。")
_TOKENS = Whole(FEWEST_TOKENS, MAX_TOKENS)

RENAME = Verb(
    "rooms.rename",
    "Name a room; its id stays. Imports name rooms that have no name.",
    "为房间命名，id 不变。导入时会给没有名字的房间命名。",
    scope="write",
    arguments=(
        _ROOM,
        Argument("name", Id(MAX_ROOM_NAME, blank=True), "Its new name; '' for no name.", "新的名字；'' 表示不要名字。"),
    ),
    run=_rename,
    answer=Room,
    route="PATCH /rooms/{room}",
    command="rename",
)
READ = Verb(
    "rooms.read",
    "Mark what was said up to a message as read by a person. A mark never moves back.",
    "把某条消息及之前的内容标为某人已读。已读位置不会后退。",
    scope="write",
    arguments=(
        _ROOM,
        Argument("user_id", Id(), "The person's sender id.", "此人的发送者 id。"),
        Argument("message_id", Id(blank=True), "By default the newest message.", "默认为最新的消息。", None),
    ),
    run=_read,
    answer=ReadMark,
    route="POST /rooms/{room}/read",
)
DIGEST = Verb(
    "rooms.digest",
    "Show what happened in a room, thread by thread. First comes what waits for the reader, then decisions, "
    "open questions, and the rest. With neither a reader nor a time it tells of the last day on which somebody wrote.",
    "按话题总结房间里发生了什么。先是等读者回应的，然后是决定、没有答案的问题和其他。既不写读者也不写时间时，总结有人发言的最后一天。",
    scope="read",
    arguments=(
        _ROOM,
        Argument(
            "for_user",
            Id(),
            "Who reads it, by id or name: it begins after what they last wrote or marked as read.",
            "给谁看，写 id 或名字：从此人最后的发言或已读位置之后开始。",
            None,
        ),
        Argument("since", Moment("start"), "From this time on.", "从这个时间开始。", None),
        Argument("max_tokens", _TOKENS, "Maximum number of tokens as text.", "文字的 token 上限。", DIGEST_TOKENS),
        Argument(
            "mode",
            Choice(get_args(Mode)),
            "`rules` (or `offline`): the messages' own sentences; `llm`: a model writes it; `auto`: a model, if one "
            "is set up.",
            "`rules`（或 `offline`）：用消息原句；`llm`：由模型撰写；`auto`：配置了模型就用模型。",
            "auto",
        ),
    ),
    run=_digest,
    answer=Digest,
    route="GET /rooms/{room}/digest",
    tool="room_digest",
    command="digest",
)
VERBS = (RENAME, READ, DIGEST)
