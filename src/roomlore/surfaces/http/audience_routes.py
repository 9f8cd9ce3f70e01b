"""Routes of what may be shown to whom: which memories a room is shown and why, who may know a memory, and shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query
from pydantic import Field

from roomlore.core.audience import MAX_NAME_CHARS
from roomlore.core.errors import Forbidden
from roomlore.core.memory.memory import MAX_SCOPE_CHARS, SCOPE_PATTERN
from roomlore.core.visibility import SeenIn, Visibility
from roomlore.surfaces.http import bodies
from roomlore.surfaces.http.answers import Router, SuccessResponse
from roomlore.surfaces.http.guard import Admin, ShownTo, Writer
from roomlore.surfaces.http.memory_routes import OneMemory, ReasonRequest, one_memory
from roomlore.surfaces.http.paths import MemoryId, Reason, RoomId
from roomlore.surfaces.jsonable import made_from

_TARGET = "^(everyone|room:.+)$"
_WITH = "With whom: room:<id> or everyone."
_LONGEST = len("room:") + MAX_NAME_CHARS


class ShareRequest(ReasonRequest):
    """With whom a memory is shared."""

    with_: str = Field(
        alias="with", max_length=_LONGEST, description=_WITH, json_schema_extra={"pattern": _TARGET, "minLength": 1}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleMemories:
    """Memories that concern a room. `memories`: each with the reasons why it is shown there or not."""

    room_id: str
    memories: Sequence[Visibility]


@dataclass(frozen=True, kw_only=True)
class WhoMaySee(SuccessResponse, SeenIn):
    """The rooms in which a version of a memory may be shown now. `everyone`: it is for all. `rooms`: their ids; empty
    if it is for all. `hidden_in`: how many other rooms there are."""

    memory_id: str


audience = Router(tags=["audience"])


@audience.get("/rooms/{room_id:id}/visible")
async def list_visible(
    lore: Admin,
    room_id: RoomId,
    scope: Annotated[
        str | None,
        Query(
            description="Whom they are about: user:<id>, agent:<id> or group:<id>; by default all of the room.",
            json_schema_extra={"pattern": SCOPE_PATTERN, "maxLength": MAX_SCOPE_CHARS},
        ),
    ] = None,
) -> VisibleMemories:
    """Return every active memory that concerns a room, with the reasons why it is shown there or withheld."""
    await lore.rooms.get(room_id)
    return VisibleMemories(
        room_id=room_id, memories=await lore.memories.visible(f"room:{room_id}", scope=scope or None)
    )


@audience.get("/memory/{memory_id:id}/visible")
async def get_who_may_see(lore: Admin, memory_id: MemoryId) -> WhoMaySee:
    """Return in which rooms this version of a memory may be shown now."""
    return made_from(WhoMaySee, await lore.memories.seen_in(memory_id), memory_id=memory_id)


@audience.put("/memory/{memory_id:id}/share", openapi_extra=bodies.documented(ShareRequest))
async def share_memory(
    lore: Writer,
    viewer: ShownTo,
    memory_id: MemoryId,
    wanted: Annotated[ShareRequest, Depends(bodies.body_of(ShareRequest))],
) -> OneMemory:
    """Share a memory with a room or with everyone, beside those who heard it. A key without the scope admin names the
    person it is about as viewer."""
    await lore.memories.check_shown(memory_id, viewer)
    done = await lore.memories.share(memory_id, wanted.with_, by=_person(viewer), reason=wanted.reason)
    return one_memory((await lore.memories.as_told([done], viewer))[0], lore)


@audience.delete("/memory/{memory_id:id}/share")
async def end_share(
    lore: Writer,
    viewer: ShownTo,
    memory_id: MemoryId,
    target: Annotated[
        str,
        Query(
            alias="with", min_length=1, max_length=_LONGEST, description=_WITH, json_schema_extra={"pattern": _TARGET}
        ),
    ],
    reason: Reason = "",
) -> OneMemory:
    """End a share, as the person that the memory is about or as an administrator."""
    await lore.memories.check_shown(memory_id, viewer)
    done = await lore.memories.unshare(memory_id, target, by=_person(viewer), reason=reason)
    return one_memory((await lore.memories.as_told([done], viewer))[0], lore)


def _person(viewer: str | None) -> str | None:
    """Return the id of the person who shares, None for an administrator. Raise `Forbidden` for a room."""
    if viewer is None:
        return None
    kind, _, name = viewer.partition(":")
    if kind != "user":
        raise Forbidden("A room shares nothing: name the person that the memory is about, as ?viewer=user:<id>.")
    return name
