"""The verbs of messages: list those of a room, and search them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from roomlore.core.intake import MAX_HITS, MAX_QUERY_CHARS
from roomlore.core.models import StoredMessage
from roomlore.core.search.hits import SearchAnswer, SearchMode
from roomlore.services.messages.search import MAX_SENDERS
from roomlore.verbs.table import Argument, Choice, Flag, Id, Many, Moment, Page, Reference, Verb, Whole, Words

if TYPE_CHECKING:
    from roomlore.wiring import Lore


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """A page of a room's messages. `next`: the `after` of the next page; null at the end."""

    messages: Sequence[StoredMessage]
    next: int | None


async def _list(lore: "Lore", viewer: str | None, *, room: str, limit: int, after: int) -> MessagePage:
    page = await lore.messages.page(room, after=after, limit=limit, viewer=viewer)
    return MessagePage(messages=page, next=page[-1].arrival if len(page) == limit else None)


async def _search(
    lore: "Lore", viewer: str | None, *, query: str, room: str | None = None, **conditions: Any
) -> SearchAnswer:
    return await lore.messages.search(room, query, viewer=viewer, **conditions)


ROOM = Argument("room", Reference.ROOM, "The room's id or name.", "房间 id 或名称。")
_MODES = Choice(get_args(SearchMode))
_SENDERS = Many(Id(blank=True), MAX_SENDERS)

LIST = Verb(
    "messages.list",
    "Return a room's messages in order of arrival: those that the viewer may see.",
    "按到达顺序返回房间的消息：查看者可见的那些。",
    scope="read",
    arguments=(
        ROOM,
        Argument("limit", Page.SIZE, "Maximum number of messages.", "最多返回多少条消息。"),
        Argument("after", Page.OFFSET, "The `next` of the page before; 0 begins.", "上一页的 `next`；从 0 开始。", 0),
    ),
    run=_list,
    answer=MessagePage,
    route="GET /messages",
)
SEARCH = Verb(
    "messages.search",
    "Find the messages that answer a question. They are of one room, or of all rooms that a viewer may see.",
    "找出能回答问题的消息。在一个房间里，或某个查看者可见的全部房间里。",
    scope="read",
    arguments=(
        Argument("room", Reference.ROOM, "By default all, the 200 used last.", "默认为最近使用的 200 个房间。", None),
        Argument("query", Words(MAX_QUERY_CHARS), "A question or a few words.", "一个问题或几个词。"),
        Argument(
            "limit",
            Whole(1, MAX_HITS),
            "Maximum number of messages; those far below the best are left out.",
            "最多返回多少条消息；得分远低于最佳的不列出。",
            10,
        ),
        Argument(
            "mode",
            _MODES,
            "`hybrid`: by words, and by meaning where an embedder is set up; `lexical`: by words alone.",
            "`hybrid`：按词，配置了向量模型时也按语义；`lexical`：只按词。",
            "hybrid",
        ),
        Argument("sender_ids", _SENDERS, "Only what this sender id said.", "只看这个发送者 id 说的。", None),
        Argument("since", Moment("start"), "Only from this time on.", "只看从这个时间起的。", None),
        Argument("until", Moment("start"), "Only before this time.", "只看这个时间之前的。", None),
        Argument(
            "asked_at",
            Moment("start", ("newest",)),
            "When it is asked: a 'last week' in the question is counted from then. A time, or `newest`: when the "
            "newest message was written; by default now.",
            "提问的时间，问题里的“上周”从这时算起：一个时间，或 `newest`（最新消息的时间）；默认是现在。",
            None,
        ),
        Argument(
            "conversation",
            Flag(),
            "Each message within its conversation, at most 12 messages.",
            "连同所在的对话，最多 12 条。",
            False,
        ),
        Argument(
            "neighbours",
            Flag(),
            "Also messages without the words that stand beside some that have them.",
            "也包括不含这些词、但紧挨着含有这些词的消息。",
            False,
        ),
    ),
    run=_search,
    answer=SearchAnswer,
    route="GET /messages/search",
    tool="search_messages",
    command="ask",
)
VERBS = (LIST, SEARCH)
