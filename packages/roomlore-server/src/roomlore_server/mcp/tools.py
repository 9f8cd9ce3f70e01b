"""The MCP tools: descriptions for models, arguments, answers, and their work."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_type_hints

from mcp import types

from roomlore.core.dates import moment
from roomlore.core.memory.memory import MemoryKind, Source
from roomlore.core.models import Candidate
from roomlore.verbs import contexts, facts, memories
from roomlore.verbs.recall import RECALL
from roomlore.verbs.rooms import DIGEST
from roomlore.verbs.table import missing
from roomlore.wiring import Lore
from roomlore_server.mcp import answers
from roomlore_server.mcp.answers import Answer, fitting
from roomlore_server.mcp.derived import Arguments, given_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """The caller of tools: the roomlore of their tenant, if they may change memories, their default scope, and to whom
    the answers are shown, None for everything."""

    lore: Lore
    may_write: bool = True
    scope: str | None = None
    viewer: str | None = None

    async def whose(self, scope: str | None) -> str:
        """Return the scope of a call, with the id of a room in place of its name. Raise `InvalidInput` if neither the
        call nor the server names one, and as `room` does."""
        if not scope and self.scope is None:
            raise missing(facts.ADD["scope"], "scope")
        return await self.lore.rooms.scope_named(scope or self.scope or "", viewer=self.viewer)

    async def room(self, given: str) -> str:
        """Return the id of the room with this id or name; what is given if there is none. Raise `InvalidInput` that
        lists their ids if several rooms have the name."""
        return await self.lore.rooms.named(given, viewer=self.viewer, or_new=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`about`: the description for models. `replaces`: it takes memories out of force, which the hint for hosts says.
    `if_lost`: what to do if the id is unknown."""

    name: str
    title: str
    about: str
    takes: type[Arguments]
    gives: type[Answer]
    run: Callable[[Visitor, Any], Awaitable[Answer]]
    writes: bool = False
    replaces: bool = False
    if_lost: str = ""

    def declared(self) -> types.Tool:
        """Return the tool in MCP's form."""
        return _declared(self)


@cache
def _declared(tool: Tool) -> types.Tool:
    """Return the tool in MCP's form. Cached: over HTTP each request has its own server."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.about,
        input_schema=_lean(tool.takes.model_json_schema()),
        output_schema=_lean(tool.gives.model_json_schema(mode="serialization")),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=tool.replaces,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def _lean(schema: Any) -> Any:
    """Return the schema without titles and without null, which equals leaving a field out: a model reads every word of
    it."""
    if isinstance(schema, list):
        return [_lean(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if not (name == "title" and isinstance(value, str))}
    choices = kept.get("anyOf", [])
    if {"type": "null"} in choices:
        kept = {name: value for name, value in kept.items() if name != "anyOf" and (name, value) != ("default", None)}
        kept = next(choice for choice in choices if choice != {"type": "null"}) | kept
    return {name: _lean(value) for name, value in kept.items()}


R = TypeVar("R", bound=Callable[[Visitor, Any], Awaitable[Answer]])
TOOLS: list[Tool] = []
_IDS = "search_memories and get_memories give the ids of memories."


def tool(**fields: Any) -> Callable[[R], R]:
    """Make a tool of a function, with its name and its answer. `fields`: the others of `Tool`."""

    def add(run: R) -> R:
        TOOLS.append(Tool(name=run.__name__, gives=get_type_hints(run)["return"], run=run, **fields))
        return run

    return add


@tool(
    title="Remember something",
    about="Remember one statement about a user, an agent or a group for later conversations. What is remembered "
    "already in the same words is not added again.",
    takes=answers.AddMemory,
    writes=True,
)
async def add_memory(visitor: Visitor, wanted: Any) -> answers.AddedMemory:
    given = given_of(facts.ADD, wanted) | {"scope": await visitor.whose(wanted.scope)}
    room_id = "" if wanted.room_id is None else await visitor.room(wanted.room_id)
    sources = [Source(room_id, message_id) for message_id in wanted.message_ids]
    done = await facts.ADD(visitor.lore, visitor.viewer, **given, sources=sources)
    same = done.outcome == "unchanged"
    hint = "It was remembered already and is as it was; update_memory changes it." if same else " ".join(done.notes)
    return answers.AddedMemory(memory=answers.details(done), outcome=done.outcome, hint=hint or None)


@tool(
    title="Search memories",
    about="Find what is remembered about a user, an agent or a group that says something about a question, best first.",
    takes=answers.SearchMemories,
)
async def search_memories(visitor: Visitor, wanted: Any) -> answers.FoundMemories:
    given = given_of(memories.SEARCH, wanted) | {"scope": await visitor.whose(wanted.scope)}
    answer = await memories.SEARCH(visitor.lore, visitor.viewer, **given)
    hits = [answers.FoundMemory(**answers.memory_fields(hit.memory), score=round(hit.score, 4)) for hit in answer.hits]
    shown = fitting(hits)
    return answers.FoundMemories(
        memories=shown, degraded=answer.degraded, hint=answer.nothing or _search_hint(shown, hits)
    )


def _search_hint(shown: Sequence[answers.FoundMemory], hits: Sequence[answers.FoundMemory]) -> str | None:
    if len(shown) < len(hits):
        return f"{len(hits) - len(shown)} more did not fit; ask for something narrower."
    return _cut_hint(shown)


def _cut_hint(shown: Sequence[answers.MemoryView]) -> str | None:
    return "get_memory gives the statements that are cut in full." if any(view.cut for view in shown) else None


@tool(
    title="List memories",
    about="List what is remembered about a user, an agent or a group, the last changed first, page by page.",
    takes=answers.GetMemories,
)
async def get_memories(visitor: Visitor, wanted: Any) -> answers.MemoryPage:
    given = given_of(facts.LIST, wanted) | {"scope": await visitor.whose(wanted.scope), "limit": wanted.limit}
    kinds = [kind.value for kind in MemoryKind] if wanted.kind is None else [wanted.kind]
    page = await facts.LIST(visitor.lore, visitor.viewer, **given | {"kind": kinds})
    shown = fitting([answers.MemoryView(**answers.memory_fields(memory)) for memory in page.facts])
    following = _next(wanted.offset, len(shown), page.total)
    return answers.MemoryPage(
        memories=shown,
        total=page.total,
        next_offset=following,
        hint=_page_hint(following, page.total) or _cut_hint(shown),
    )


def _next(offset: int, shown: int, total: int) -> int | None:
    following = offset + shown
    return following if shown and following < total else None


def _page_hint(following: int | None, total: int) -> str | None:
    return None if following is None else f"{total - following} more; go on with offset={following}."


@tool(
    title="Read a memory",
    about="Read one memory as it is now, in full, with the messages that support it.",
    takes=answers.GetMemory,
    if_lost=_IDS,
)
async def get_memory(visitor: Visitor, wanted: Any) -> answers.OneMemory:
    memory = answers.details(await facts.GET(visitor.lore, visitor.viewer, **given_of(facts.GET, wanted)))
    hint = None if memory.status == "active" else "It was deleted and is not recalled any more."
    return answers.OneMemory(memory=memory, hint=hint)


@tool(
    title="Change a memory",
    about="Change what a memory says. It becomes a new version with a new id; the one before stays in the history.",
    takes=answers.UpdateMemory,
    writes=True,
    replaces=True,
    if_lost=_IDS,
)
async def update_memory(visitor: Visitor, wanted: Any) -> answers.OneMemory:
    changed = await facts.CHANGE(visitor.lore, visitor.viewer, **given_of(facts.CHANGE, wanted))
    return answers.OneMemory(memory=answers.details(changed))


@tool(
    title="Delete a memory",
    about="Take a memory out of force: it is not found or recalled any more, but stays in the history.",
    takes=answers.DeleteMemory,
    writes=True,
    replaces=True,
    if_lost=_IDS,
)
async def delete_memory(visitor: Visitor, wanted: Any) -> answers.OneMemory:
    gone = await facts.DELETE(visitor.lore, visitor.viewer, **given_of(facts.DELETE, wanted))
    return answers.OneMemory(memory=answers.details(gone), hint="It is out of force; its history stays.")


@tool(
    title="History of a memory",
    about="Every version of a memory, the first one first: what it said, who made it, and why.",
    takes=answers.MemoryHistory,
    if_lost=_IDS,
)
async def memory_history(visitor: Visitor, wanted: Any) -> answers.Versions:
    answer = await facts.HISTORY(visitor.lore, visitor.viewer, **given_of(facts.HISTORY, wanted))
    versions = answer.versions
    shown = fitting([answers.version_of(memory) for memory in versions[wanted.offset :]])
    following = _next(wanted.offset, len(shown), len(versions))
    return answers.Versions(
        versions=shown, total=len(versions), next_offset=following, hint=_page_hint(following, len(versions))
    )


@tool(
    title="Memories for a prompt",
    about="One block of the memories that matter for what is being talked about, within max_tokens, to put into a "
    "prompt.",
    takes=answers.MemoryPrompt,
)
async def memory_prompt(visitor: Visitor, wanted: answers.MemoryPrompt) -> answers.PromptBlock:
    scopes = [await visitor.whose(scope) for scope in wanted.scopes or ("",)]
    conversation = [{"role": "user", "content": wanted.query}] if wanted.query.strip() else []
    given = {"scopes": scopes, "messages": conversation, "max_tokens": wanted.max_tokens}
    recollection = await RECALL(visitor.lore, visitor.viewer, **given)
    return answers.PromptBlock(
        text=recollection.text,
        tokens=recollection.tokens,
        taken=len(recollection.facts),
        considered=recollection.considered,
        degraded=recollection.degraded,
        hint=_prompt_hint(len(recollection.facts), recollection.considered),
    )


def _prompt_hint(taken: int, considered: int) -> str | None:
    if considered == 0:
        return "Nothing is remembered there yet."
    return None if taken else "No memory fits; ask with more max_tokens."


@tool(
    title="Search messages",
    about="Find what was said that fits well, best first.",
    takes=answers.SearchMessages,
    if_lost="Leave room_id out to search all rooms.",
)
async def search_messages(visitor: Visitor, wanted: answers.SearchMessages) -> answers.FoundMessages:
    room_id = None if wanted.room_id is None else await visitor.room(wanted.room_id)
    answer = await visitor.lore.messages.search(
        room_id,
        wanted.query,
        limit=wanted.limit,
        viewer=visitor.viewer,
        sender_ids=wanted.sender_ids,
        since=_time(visitor.lore, "since", wanted.since),
        until=_time(visitor.lore, "until", wanted.until),
    )
    by_room: dict[str, list[str]] = {}
    for hit in answer.hits:
        by_room.setdefault(hit.message.room_id, []).append(hit.message.id)
    titles = {room: await _threads(visitor, room, its) for room, its in by_room.items()}
    hits = [answers.found_message(hit, titles[hit.message.room_id].get(hit.message.id)) for hit in answer.hits]
    return answers.FoundMessages(messages=fitting(hits), degraded=answer.degraded, hint=answer.hint)


def _time(lore: Lore, name: str, words: str | None) -> datetime | None:
    """Return the time that the words name. Raise `InvalidInput`."""
    return moment(name, words, now=lore.now(), zone=lore.settings.search.zone, edge="start") if words else None


async def _threads(visitor: Visitor, room_id: str, message_ids: Sequence[str]) -> dict[str, str]:
    """Return the titles of the threads of messages that the visitor sees."""
    made = await visitor.lore.rooms.headings(room_id, message_ids, viewer=visitor.viewer)
    return {name: heading.title for name, heading in made.items() if heading.title}


@tool(
    title="Context of a message",
    about="The earlier messages of a room that matter for answering a message, each with its score and the reason "
    "it was taken. Leaves out what seems to belong to other conversations.",
    takes=answers.RoomContext,
    if_lost="Ask the user which room and message are meant.",
)
async def room_context(visitor: Visitor, wanted: Any) -> answers.RoomMessages:
    given = {"room": await visitor.room(wanted.room_id), "max_messages": wanted.max_messages}
    context_built = await contexts.BUILD(visitor.lore, visitor.viewer, **given_of(contexts.BUILD, wanted) | given)
    shown = _likeliest(context_built.messages, context_built.parent)
    left_out = len(context_built.messages) - len(shown)
    return answers.RoomMessages(
        room_id=context_built.room_id,
        message_id=context_built.message_id,
        strategy=context_built.strategy,
        thread=answers.label(
            (await _threads(visitor, context_built.room_id, [context_built.message_id])).get(
                context_built.message_id, ""
            )
        ),
        messages=shown,
        left_out=left_out or None,
        degraded=context_built.degraded,
        hint=None if shown else "Nothing said before matters for this message.",
    )


def _likeliest(taken: Sequence[Candidate], parent: str | None) -> list[answers.MessageView]:
    """Return the messages that fit, the likeliest preferred, in the order in which they were written."""
    views = [answers.message_of(message, parent) for message in taken]
    ranked = sorted(range(len(views)), key=lambda place: -views[place].score)
    kept = len(fitting([views[place] for place in ranked]))
    return [views[place] for place in sorted(ranked[:kept])]


@tool(
    title="List rooms",
    about="List the rooms (group chats, channels, conversations) with their names and ids, page by page.",
    takes=answers.ListRooms,
)
async def list_rooms(visitor: Visitor, wanted: answers.ListRooms) -> answers.RoomList:
    page = await visitor.lore.rooms.page(after=wanted.after, limit=wanted.limit + 1, viewer=visitor.viewer)
    views = [
        answers.RoomView(
            room_id=room.room_id,
            name=answers.label(room.name),
            kind=room.kind,
            messages=room.messages,
            last_message_at=room.last_sent_at,
        )
        for room in page[: wanted.limit]
    ]
    shown = fitting(views)
    following = shown[-1].room_id if len(shown) < len(page) else None
    hint = None if following is None else f"There are more; go on with after={following!r:.200}."
    return answers.RoomList(rooms=shown, next_after=following, hint=hint if shown else "There is no room to show.")


@tool(
    title="What was missed in a room",
    about=DIGEST.en,
    takes=answers.RoomDigest,
    if_lost="list_rooms gives the ids of rooms.",
)
async def room_digest(visitor: Visitor, wanted: Any) -> answers.DigestBlock:
    """Give the messages' own sentences: who asks is a model itself."""
    zone, since = visitor.lore.settings.search.zone, _time(visitor.lore, "since", wanted.since)
    given = given_of(DIGEST, wanted) | {"room": await visitor.room(wanted.room_id), "since": since, "mode": "offline"}
    digest_made = await DIGEST(visitor.lore, visitor.viewer, **given)
    return answers.DigestBlock(
        room_id=digest_made.room_id,
        text=digest_made.to_prompt(zone=zone),
        messages=digest_made.messages,
        left=digest_made.left,
        tokens=digest_made.tokens,
        hint=_digest_hint(digest_made.messages, digest_made.left),
    )


def _digest_hint(messages: int, left: int) -> str | None:
    if not messages:
        return "Nothing was said since."
    return "Ask with more max_tokens, or a later since, for the rest." if left else None
