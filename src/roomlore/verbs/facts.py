"""The verbs of facts: what is known of people, agents and groups, added and changed by hand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from roomlore.core.memory.memory import Memory, MemoryKind, Source, Status
from roomlore.core.memory.versions import AddedFact
from roomlore.core.memory.writing import (
    MAX_LABEL,
    MAX_PEOPLE,
    MAX_REASON,
    MAX_SOURCES,
    MAX_STATEMENT,
    MAX_TAGS,
    NewMemory,
)
from roomlore.verbs.table import Argument, Choice, Id, Many, Moment, Number, Page, Reference, Text, Verb

if TYPE_CHECKING:
    from roomlore.wiring import Lore


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPage:
    """A page of facts. `total`: how many there are on all pages. `next`: the `offset` of the next page; null at the
    end."""

    facts: Sequence[Memory]
    total: int
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHistory:
    """The versions of a fact, the first one first."""

    versions: Sequence[Memory]


async def _add(lore: "Lore", viewer: str | None, **fact: Any) -> AddedFact:
    return (await lore.memories.add_told([NewMemory(**fact)], viewer=viewer))[0]


async def page_of(
    lore: "Lore", viewer: str | None, scope: str, kinds: Iterable[str], status: Status, *, limit: int, offset: int
) -> tuple[list[Memory], int]:
    """Return a page of the memories of a scope, the last changed first, and how many there are on all pages."""
    which: Any = {"kinds": tuple(map(MemoryKind, kinds)), "status": status, "viewer": viewer}
    page = await lore.memories.page(scope, limit=limit, offset=offset, **which)
    return page, await lore.memories.count(scope, **which)


async def _list(
    lore: "Lore",
    viewer: str | None,
    *,
    scope: str,
    kind: Sequence[str] = ("fact",),
    status: Status,
    limit: int,
    offset: int,
) -> FactPage:
    page, total = await page_of(lore, viewer, scope, kind, status, limit=limit, offset=offset)
    following = offset + len(page)
    return FactPage(facts=page, total=total, next=following if page and following < total else None)


async def _get(lore: "Lore", viewer: str | None, *, memory_id: str) -> Memory:
    return await lore.memories.head(memory_id, viewer=viewer)


async def as_told(lore: "Lore", viewer: str | None, memory: Memory) -> Memory:
    """Return a memory that a viewer changed as they are told it."""
    return (await lore.memories.as_told([memory], viewer))[0]


async def _change(
    lore: "Lore", viewer: str | None, *, memory_id: str, sources: Sequence[Source] | None = None, **change: Any
) -> Memory:
    await lore.memories.check_changeable(memory_id, viewer, citing=sources or ())
    changed = await lore.memories.update(memory_id, sources=sources, viewer=viewer, **change)
    return await as_told(lore, viewer, changed)


async def _delete(
    lore: "Lore", viewer: str | None, *, memory_id: str, reason: str, expected: str | None = None
) -> Memory:
    await lore.memories.check_changeable(memory_id, viewer)
    gone = await lore.memories.delete(memory_id, reason, expected=expected)
    return await as_told(lore, viewer, gone)


async def _history(lore: "Lore", viewer: str | None, *, memory_id: str) -> FactHistory:
    return FactHistory(versions=await lore.memories.history(memory_id, viewer=viewer))


KINDS = Choice(("fact", "group", "short"))
ABOUT = Argument(
    "scope",
    Reference.SCOPE,
    "Whom it is about: user:<id>, agent:<id> or group:<id or name>.",
    "关于谁：user:<id>、agent:<id> 或 group:<id 或名称>。",
)
_STATEMENT = Argument(
    "statement",
    Text(MAX_STATEMENT, blank=False),
    "One statement that stands by itself.",
    "要记住的内容，一句能独立理解的话。",
)
_KIND = Argument(
    "kind",
    KINDS,
    "fact: something known of a person, an agent or a room. short: what a few messages said. "
    "group: what a room has come to agree on or do.",
    "fact：关于人、智能体或房间的已知情况。short：几条消息的内容。group：一个房间形成的共识或习惯。",
    "fact",
)
_CONTENT = (
    Argument("confidence", Number(0, 1), "How sure it is, from 0 to 1.", "有多确定，0 到 1。", None),
    Argument("category", Text(MAX_LABEL), "Such as `preference`.", "属于哪一类，例如 `preference`。", ""),
    Argument("tags", Many(Text(MAX_LABEL, blank=False), MAX_TAGS), "Its tags.", "标签。", ()),
    Argument(
        "owner",
        Id(blank=True),
        "The id of a person with whom it is to be forgotten, where it is about an agent or a group.",
        "内容关于智能体或群时，应随谁一起被遗忘：此人的 id。",
        "",
    ),
    Argument(
        "said_by",
        Many(Id(), MAX_PEOPLE),
        "Who said it, by id.",
        "谁说的，写 id。",
        (),
    ),
    Argument(
        "valid_from",
        Moment("start"),
        "Since when it holds; a day counts from its start.",
        "从何时起成立；只写日期时从当天开始算起。",
        None,
    ),
    Argument(
        "valid_until",
        Moment("end"),
        "When it ends; a day counts to its end (setting time_zone).",
        "何时结束；只写日期时算到当天结束（时区为设置 time_zone）。",
        None,
    ),
    Argument(
        "sources",
        Many(Reference.SOURCE, MAX_SOURCES),
        "The messages that support it, each with the id or the name of its room.",
        "支持它的消息，每条写明房间的 id 或名称。",
        (),
    ),
)
FACT = Argument("memory_id", Reference.MEMORY, "The id of any version of it.", "任一版本的 id。")
EXPECTED = Argument(
    "expected",
    Id(blank=True),
    "The version you saw; refused if another is in force.",
    "你看到的版本；生效的不是它时拒绝修改。",
    None,
)
REASON = Argument("reason", Text(MAX_REASON), "Why, for the history.", "原因，写入历史。", "")
STATUS = Argument(
    "status",
    Choice(get_args(Status)),
    "active: valid now or later; ended: no longer valid; deprecated: deleted or merged; all: any.",
    "active：现在或将来成立的；ended：已不成立的；deprecated：已删除或合并的；all：全部。",
    "active",
)


def _changed(argument: Argument) -> Argument:
    """Return the argument of a change, which leaves as it is what is not given."""
    en, zh = _CHANGED.get(argument.name, argument.help)
    return replace(argument, en=en, zh=zh, default=None, clears=argument.default is None)


_CHANGED = {
    "statement": ("What it says from now on.", "从现在起的内容。"),
    "tags": ("Its tags, in place of all others.", "标签，取代原有的全部标签。"),
    "owner": ("The id of a person with whom it is to be forgotten.", "应随谁一起被遗忘：此人的 id。"),
}


ADD = Verb(
    "facts.add",
    "Remember a statement about a person, an agent or a group. Everybody may be shown it, unless its sources are "
    "messages that some did not see. One that exists, by its id or in the same words, is not added again.",
    "记住关于一个人、智能体或群的一句话。所有人都可以看到它，除非它的来源消息有人看不到。id 或内容相同的不会重复添加。",
    scope="write",
    arguments=(
        ABOUT,
        _STATEMENT,
        _KIND,
        *_CONTENT,
        Argument(
            "memory_id",
            Id(),
            "An id of your own makes the call safe to repeat.",
            "自定的 id，使重复执行不会产生重复。",
            None,
        ),
    ),
    run=_add,
    answer=AddedFact,
    tool="add_memory",
    command="remember",
)
LIST = Verb(
    "facts.list",
    "List the facts about a person, an agent or a group, the last changed first.",
    "列出关于一个人、智能体或群的事实，最近修改的在前。",
    scope="read",
    arguments=(
        ABOUT,
        Argument("kind", Many(KINDS, 3), "By default fact.", "默认为 fact。", None),
        STATUS,
        Argument("limit", Page.SIZE, "Maximum number of facts.", "最多返回多少条。"),
        Argument("offset", Page.OFFSET, "The `next` of the page before; 0 begins.", "上一页的 `next`；从 0 开始。", 0),
    ),
    run=_list,
    answer=FactPage,
    route="GET /facts",
    tool="get_memories",
    command="facts list",
)
GET = Verb(
    "facts.get",
    "Return the version in force, for the id of any version; the last one of a deleted fact.",
    "返回生效的版本（任一版本的 id 均可）；已删除的返回最后一个版本。",
    scope="read",
    arguments=(FACT,),
    run=_get,
    answer=Memory,
    route="GET /facts/{memory_id}",
    tool="get_memory",
)
CHANGE = Verb(
    "facts.change",
    "Change a fact. It gets a new version with a new id; the version before stays in its history.",
    "修改一条事实。修改会产生有新 id 的新版本，旧版本留在历史里。",
    scope="write",
    arguments=(FACT, *map(_changed, (_STATEMENT, *_CONTENT)), EXPECTED, REASON),
    run=_change,
    answer=Memory,
    some_of=tuple(argument.name for argument in (_STATEMENT, *_CONTENT)),
    route="PATCH /facts/{memory_id}",
    tool="update_memory",
    command="facts update",
)
DELETE = Verb(
    "facts.delete",
    "Delete a fact. It stays in its history and is no longer recalled; deleting it again changes nothing.",
    "删除一条事实。它留在历史里，不再被召回；重复删除没有影响。",
    scope="write",
    arguments=(FACT, REASON, EXPECTED),
    run=_delete,
    answer=Memory,
    route="DELETE /facts/{memory_id}",
    tool="delete_memory",
    command="facts delete",
)
HISTORY = Verb(
    "facts.history",
    "Return every version of a fact, the first one first.",
    "返回事实的所有版本，最早的在前。",
    scope="read",
    arguments=(FACT,),
    run=_history,
    answer=FactHistory,
    route="GET /facts/{memory_id}/history",
    tool="memory_history",
)
VERBS = (ADD, LIST, GET, CHANGE, DELETE, HISTORY)
