"""The verbs of memories: what is known of a group, a person or an agent, its history, and how it is taken back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_QUERY_CHARS
from roomlore.core.memory.memory import Blame, Change, Memory, MemoryAnswer, MemoryDiff, MemoryKind, Status
from roomlore.core.visibility import Visibility
from roomlore.verbs.facts import DELETE as DELETE_FACT
from roomlore.verbs.facts import FACT, REASON, STATUS, as_told, page_of
from roomlore.verbs.facts import HISTORY as HISTORY_OF_FACT
from roomlore.verbs.table import (
    AdminVerb,
    Argument,
    Choice,
    Flag,
    Many,
    Moment,
    Number,
    Page,
    Reference,
    Verb,
    Whole,
    Words,
)

if TYPE_CHECKING:
    from roomlore.wiring import Lore


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesOf:
    """Memories of a scope. `total`: how many there are on all pages."""

    scope: str
    total: int
    memories: Sequence[Memory]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesThen(MemoriesOf):
    """The memories of a scope as of a time."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleMemories:
    """Memories that concern a room. `memories`: each with the reasons why it is shown there or not."""

    room_id: str
    memories: Sequence[Visibility]


async def _list(
    lore: "Lore",
    viewer: str | None,
    *,
    scope: str,
    kind: Sequence[str] = tuple(MemoryKind),
    status: Status,
    limit: int,
    offset: int,
) -> MemoriesOf:
    page, total = await page_of(lore, viewer, scope, kind, status, limit=limit, offset=offset)
    return MemoriesOf(scope=scope, total=total, memories=page)


async def _search(
    lore: "Lore",
    viewer: str | None,
    *,
    scope: str,
    query: str,
    limit: int,
    threshold: float,
    include_ended: bool,
) -> MemoryAnswer:
    return await lore.memories.search(
        scope, query, limit=limit, threshold=threshold, include_ended=include_ended, viewer=viewer
    )


async def _history(lore: "Lore", viewer: str | None, **which: Any) -> list[Memory]:
    return list((await HISTORY_OF_FACT(lore, viewer, **which)).versions)


async def _as_of(lore: "Lore", _: str | None, *, scope: str, at: datetime) -> MemoriesThen:
    await lore.rooms.check_there(scope)
    memories = await lore.memories.as_of(scope, at)
    return MemoriesThen(scope=scope, at=at, total=len(memories), memories=memories)


async def _diff(lore: "Lore", _: str | None, *, scope: str, start: datetime, end: datetime | None = None) -> MemoryDiff:
    await lore.rooms.check_there(scope)
    if end is None and start > lore.now():
        raise InvalidInput("start_in_future", start=start.isoformat())
    return await lore.memories.diff(scope, start, end)


async def _blame(lore: "Lore", _: str | None, *, memory_id: str) -> Blame:
    return await lore.memories.blame(memory_id)


async def _visible(lore: "Lore", _: str | None, *, room: str, scope: str | None = None) -> VisibleMemories:
    await lore.rooms.get(room)
    return VisibleMemories(room_id=room, memories=await lore.memories.visible(f"room:{room}", scope=scope))


async def _restore(lore: "Lore", viewer: str | None, *, memory_id: str, reason: str) -> Memory:
    await lore.memories.check_changeable(memory_id, viewer)
    back = await lore.memories.restore(memory_id, reason)
    return await as_told(lore, viewer, back)


async def _strength(lore: "Lore", viewer: str | None, *, memory_id: str, strength: float, reason: str) -> Memory:
    await lore.memories.check_changeable(memory_id, viewer)
    done = await lore.memories.strength(memory_id, strength, reason)
    return await as_told(lore, viewer, done)


async def _revert(lore: "Lore", _: str | None, *, evolution_id: str, reason: str) -> list[Change]:
    return await lore.memories.revert(evolution_id, reason)


GROUP = Argument(
    "scope",
    Reference.GROUP,
    "The group's id or name, or a scope: group:<id>, user:<id> or agent:<id>.",
    "群的 id 或名称，或一个范围：group:<id>、user:<id> 或 agent:<id>。",
)
_MEMORY = FACT
_VERSION = Argument("memory_id", Reference.VERSION, "The id of the version.", "版本的 id。")

LIST = Verb(
    "memories.list",
    "List the memories of a group, a person or an agent, the last changed first.",
    "列出一个群、一个人或智能体的记忆，最近修改的在前。",
    scope="read",
    arguments=(
        GROUP,
        Argument(
            "kind",
            Many(Choice(tuple(kind.value for kind in MemoryKind)), len(MemoryKind)),
            "By default every kind.",
            "默认为所有种类。",
            None,
        ),
        STATUS,
        Argument("limit", Page.SIZE, "Maximum number of memories.", "最多返回多少条。"),
        Argument("offset", Page.OFFSET, "How many were shown before.", "之前已显示多少条。", 0),
    ),
    run=_list,
    answer=MemoriesOf,
    route="GET /memory/list/{scope}",
    command="memory list",
)
SEARCH = Verb(
    "memories.search",
    "Find the memories of a group, a person or an agent that answer a question, best first.",
    "搜索能回答问题的记忆，最好的在前。",
    scope="read",
    arguments=(
        GROUP,
        Argument("query", Words(MAX_QUERY_CHARS), "A question or a few words.", "一个问题或几个词。"),
        Argument("limit", Whole(1, 200), "Maximum number of memories.", "最多返回多少条。", 5),
        Argument("threshold", Number(0, 1), "The lowest score; lower finds more.", "最低得分；越低找到的越多。", 0.7),
        Argument("include_ended", Flag(), "Also what is no longer valid.", "包括已不成立的。", False),
    ),
    run=_search,
    answer=MemoryAnswer,
    route="GET /memory/search/{scope}",
    tool="search_memories",
    command="memory search",
)
HISTORY = Verb(
    "memories.history",
    "Show every version of a memory, the first one first.",
    "显示一条记忆的所有版本，最早的在前。",
    scope="read",
    arguments=HISTORY_OF_FACT.arguments,
    run=_history,
    answer=list[Memory],
    route="GET /memory/history/{memory_id}",
    command="memory history",
)
AS_OF = AdminVerb(
    "memories.as_of",
    "List the memories of a group, a person or an agent as of a time.",
    "列出一个群、一个人或智能体在某个时间的记忆。",
    arguments=(
        GROUP,
        Argument("at", Moment("end"), "When: a day counts as it ends.", "时间；只写日期时指当天结束时。"),
    ),
    run=_as_of,
    answer=MemoriesThen,
    route="GET /memory/as-of/{scope}",
    command="memory as-of",
)
DIFF = AdminVerb(
    "memories.diff",
    "Show what changed in the memories of a group, a person or an agent between two times, word by word.",
    "逐词显示一个群、一个人或智能体的记忆在两个时间之间的变化。",
    arguments=(
        GROUP,
        Argument("start", Moment("start"), "From when; a day counts as it begins.", "从何时起；日期从当天开始。"),
        Argument("end", Moment("end"), "Until when; by default now.", "到何时为止；默认为现在。", None),
    ),
    run=_diff,
    answer=MemoryDiff,
    route="GET /memory/diff/{scope}",
    command="memory diff",
)
BLAME = AdminVerb(
    "memories.blame",
    "Show the messages and evolutions that made a memory, the newest version first.",
    "显示一条记忆依据的消息和演化，最新的版本在前。",
    arguments=(_MEMORY,),
    run=_blame,
    answer=Blame,
    route="GET /memory/blame/{memory_id}",
    command="memory blame",
)
DELETE = Verb(
    "memories.delete",
    "Delete a memory. It stays in its history and can be restored; deleting it again changes nothing.",
    "删除一条记忆。它留在历史里，可以恢复；重复删除没有影响。",
    scope="write",
    arguments=DELETE_FACT.arguments,
    run=DELETE_FACT.run,
    answer=Memory,
    route="DELETE /memory/{memory_id}",
    command="memory delete",
)
RESTORE = Verb(
    "memories.restore",
    "Bring a version of a memory back into force, in place of the one in force.",
    "恢复一条记忆的某个版本，取代生效的版本。",
    scope="write",
    arguments=(_VERSION, REASON),
    run=_restore,
    answer=Memory,
    route="PUT /memory/{memory_id}/restore",
    command="memory restore",
)
STRENGTH = Verb(
    "memories.strength",
    "Set the strength of a memory.",
    "设置一条记忆的强度。",
    scope="write",
    arguments=(
        _MEMORY,
        Argument(
            "strength",
            Number(0, 1),
            "How strong it is from now on, from 0 to 1; it fades from there.",
            "从现在起的强度，0 到 1；之后逐渐衰减。",
        ),
        REASON,
    ),
    run=_strength,
    answer=Memory,
    route="PUT /memory/{memory_id}/strength",
    command="memory strength",
)
REVERT = AdminVerb(
    "memories.revert",
    "Undo an evolution by new changes: memories it made are removed, memories it replaced are in force again.",
    "以新的修改撤销一次演化：删除它新建的记忆，恢复它替换的记忆。",
    arguments=(
        Argument(
            "evolution_id",
            Reference.EVOLUTION,
            "The id that `roomlore memory log` shows.",
            "`roomlore memory log` 显示的演化 id。",
        ),
        REASON,
    ),
    run=_revert,
    answer=list[Change],
    route="POST /memory/revert/{evolution_id}",
    command="memory revert",
)
VISIBLE = AdminVerb(
    "memories.visible",
    "Show which memories may be shown in a room, and why.",
    "显示哪些记忆可以在房间里展示，以及原因。",
    arguments=(
        Argument("room", Reference.ROOM, "The room's id or name.", "房间 id 或名称。"),
        Argument(
            "scope",
            Reference.SCOPE,
            "Only memories about user:<id>, agent:<id> or group:<id or name>; else of the room and its people.",
            "只看关于 user:<id>、agent:<id> 或 group:<id 或名称> 的记忆；默认是这个房间及其成员的。",
            None,
        ),
    ),
    run=_visible,
    answer=VisibleMemories,
    route="GET /rooms/{room}/visible",
    command="visible",
)
VERBS = (LIST, SEARCH, HISTORY, AS_OF, DIFF, BLAME, DELETE, RESTORE, STRENGTH, REVERT, VISIBLE)
