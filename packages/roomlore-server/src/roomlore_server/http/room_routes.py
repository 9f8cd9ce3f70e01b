"""Routes of rooms, their threads, digests, audiences and settings, with their responses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request
from starlette.responses import Response

from roomlore.core.audience import Member, RoomPeople
from roomlore.core.context import ContextOptions
from roomlore.core.deletion import ROOM_PLACES_IN_WORDS, RoomReport
from roomlore.core.digest.digest import Digest
from roomlore.core.errors import InvalidInput
from roomlore.core.models import Correction, Entry, Heading, Room, Thread
from roomlore.settings.sections import ContextSettings
from roomlore.surfaces.jsonable import IF_ANY, made_from
from roomlore.verbs import rooms as verbs
from roomlore.wiring import Lore
from roomlore_server.http import bodies, problems
from roomlore_server.http.answers import reply
from roomlore_server.http.bodies import Bounds
from roomlore_server.http.derived import add_routes
from roomlore_server.http.guard import Admin, Reader, ShownTo, Writer
from roomlore_server.http.paths import MOST, AdminsRoom, After, MessageId, PageLimit, ShownRoom
from roomlore_server.http.routers import Router
from roomlore_server.http.times import MAX_WORDS, TIME_IN_QUERY
from roomlore_server.shapes import model_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomPage:
    """A page of rooms. `next`: the `after` of the next page; null at the end."""

    rooms: Sequence[Room]
    next: str | None


@dataclass(frozen=True, kw_only=True)
class RoomDeletion(RoomReport):
    """What deleting a room removes. `status`: `counted` if nothing was removed, `done`, or `running` if it goes on."""

    status: Literal["counted", "running", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedThread(Thread):
    """A thread of a room. `arrival`: of its first message."""

    arrival: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """A page of a room's threads. `next`: the `after` of the next page; null at the end."""

    threads: list[ListedThread]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadMessages:
    """The newest messages of a thread, in order."""

    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDigest(Digest):
    """A digest of a room since a message. `rendered`: the digest as one text for a model; left out unless asked
    for."""

    rendered: Annotated[str | None, IF_ANY] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageHeading(Heading):
    """The title and the state of the thread of a message."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadingList:
    """Headings by message, without unknown messages."""

    headings: Sequence[MessageHeading]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInForce:
    """The value of a setting, and where it was set."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomSettings:
    """Every setting that a room may have."""

    room_id: str
    settings: dict[str, SettingInForce]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionPage:
    """A page of the log of corrected links. `next`: the `before` of the next page; null at the end."""

    corrections: Sequence[Correction]
    next: int | None


rooms = Router(tags=["rooms"])
_MAX_WAITED = 30.0


def _settings_schema() -> dict[str, Any]:
    """Return the schema of a room's own settings, with the limits of `Settings`."""
    known = bodies.inlined(ContextSettings.model_json_schema())["properties"]
    own = {name: _limits_of(known[name]) for name in ContextOptions().flat()}
    return {
        "type": "object",
        "description": "Setting to value; null takes it back.",
        "additionalProperties": False,
        "properties": {name: {"anyOf": [own_schema, {"type": "null"}]} for name, own_schema in own.items()},
    }


def _limits_of(setting: Any) -> Any:
    """Return the schema of a setting without its default. Pydantic leaves out the bounds of optional values."""
    if isinstance(setting, list):
        return list(map(_limits_of, setting))
    if not isinstance(setting, dict):
        return setting
    names = {"ge": "minimum", "le": "maximum"}
    return {names.get(key, key): _limits_of(value) for key, value in setting.items() if key not in ("default", "form")}


@rooms.get("/rooms")
async def list_rooms(
    lore: Admin,
    limit: PageLimit,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> RoomPage:
    """Return the rooms, by id."""
    page = await lore.rooms.page(after=after, limit=limit, viewer=None)
    return RoomPage(rooms=page, next=page[-1].room_id if len(page) == limit else None)


@rooms.get("/rooms/{room_id:id}")
async def get_room(lore: Reader, room_id: ShownRoom) -> Room:
    """Return a room's counters and its own settings."""
    return await lore.rooms.get(room_id)


@rooms.delete(
    "/rooms/{room_id:id}",
    responses={202: {"model": model_of(RoomDeletion), "description": "It goes on. The same request waits for it."}},
)
async def delete_room(
    request: Request,
    lore: Admin,
    room_id: AdminsRoom,
    dry_run: Annotated[bool, Query(description="Change nothing; say what would go, and what would stay.")] = False,
    confirm: Annotated[bool, Query(description="True, to do it: it cannot be undone.")] = False,
) -> RoomDeletion | Response:
    """Remove a room with everything that rests on it alone. Without `confirm` nothing is removed, and the answer is a
    422 that says what would be.

    It is a job, which is stored before it begins and goes on after a restart of the server. Nobody sees the room from
    then on, and adding to it is a 409 until it is gone. If it takes more than 30 seconds, the answer is a 202.
    """
    if dry_run or not confirm:
        would = await lore.rooms.delete(room_id, dry_run=True)
        if not dry_run:
            raise _unconfirmed(request, would)
        return made_from(RoomDeletion, would, status="counted")
    begun = await lore.rooms.begin_deletion(room_id)
    job = await lore.jobs.wait(begun.job_id, _MAX_WAITED)
    if job.status == "done":
        return made_from(RoomDeletion, begun, status="done")
    return reply(made_from(RoomDeletion, begun, status="running"), 202)


def _unconfirmed(request: Request, would: RoomReport) -> InvalidInput:
    goes = {ROOM_PLACES_IN_WORDS.get(place, place): count for place, count in would.places.items()}
    places = ", ".join(f"{problems.in_language(request.scope, what)}: {count}" for what, count in goes.items())
    return InvalidInput("room_deletion_unconfirmed", room=f"{would.room_id!r:.80}", places=places or "-")


@rooms.get("/rooms/{room_id:id}/threads")
async def list_threads(lore: Reader, room_id: ShownRoom, limit: PageLimit, after: After = 0) -> ThreadPage:
    """Return the room's threads in the order in which they began."""
    page = await lore.rooms.threads(room_id, after=after, limit=limit)
    threads = [made_from(ListedThread, thread, arrival=arrival) for arrival, thread in page]
    return ThreadPage(threads=threads, next=page[-1][0] if len(page) == limit else None)


@rooms.get("/rooms/{room_id:id}/headings")
async def get_headings(
    lore: Reader,
    viewer: ShownTo,
    room_id: ShownRoom,
    message_id: Annotated[list[str], Query(description="A message; may be repeated, at most 500 times.")],
) -> HeadingList:
    """Return the title and the state of the threads of some messages, such as those of a search or a context.

    A thread is `open` if a question in it has no answer, `answered` if every question has one, else `closed`.
    """
    made = await lore.rooms.headings(room_id, message_id, viewer=viewer)
    return HeadingList(headings=[made_from(MessageHeading, heading, message_id=name) for name, heading in made.items()])


@rooms.get("/rooms/{room_id:id}/threads/{message_id:id}")
async def get_thread(lore: Reader, room_id: ShownRoom, message_id: MessageId, limit: PageLimit) -> ThreadMessages:
    """Return the newest messages of the thread of a message."""
    return ThreadMessages(entries=await lore.rooms.thread(room_id, message_id, limit=limit))


@rooms.get("/rooms/{room_id:id}/audience")
async def get_audience(lore: Admin, room_id: AdminsRoom) -> RoomPeople:
    """Return who can see a room: its kind, and its people without agents, with their stays and when each spoke."""
    return await lore.rooms.people(room_id)


@rooms.patch("/rooms/{room_id:id}/audience", openapi_extra=bodies.described(bodies.AudienceRequest))
async def change_audience(
    lore: Admin,
    room_id: AdminsRoom,
    wanted: Annotated[bodies.AudienceRequest, Depends(bodies.body_of(bodies.AudienceRequest, within=Bounds.bulk))],
) -> RoomPeople:
    """Say who can see a room: its kind, all its members, or who joined and left. A room that is not there is made."""
    if wanted.kind is not None:
        kind = None if wanted.kind == "unknown" else wanted.kind
        await lore.rooms.set_kind(room_id, kind, since=wanted.since)
    if wanted.members is not None:
        await lore.rooms.set_members(room_id, _members(wanted.members))
    if wanted.add:
        await lore.rooms.add_members(room_id, _members(wanted.add))
    if wanted.remove:
        await lore.rooms.remove_members(room_id, wanted.remove)
    return await lore.rooms.people(room_id)


def _members(given: Sequence[str | bodies.MemberForm]) -> list[Member]:
    return [
        Member(member) if isinstance(member, str) else Member(member.person_id, member.joined_at, member.left_at)
        for member in given
    ]


@rooms.get("/rooms/{room_id:id}/settings")
async def get_room_settings(lore: Reader, room_id: ShownRoom) -> RoomSettings:
    """Return every setting that a room may have, with its value and source."""
    in_force = await lore.rooms.settings(room_id)
    rows = {name: SettingInForce(value=value, source=source) for name, (value, source) in in_force.items()}
    return RoomSettings(room_id=room_id, settings=rows)


@rooms.patch(
    "/rooms/{room_id:id}/settings",
    openapi_extra=bodies.described(_settings_schema),
)
async def change_room_settings(request: Request, lore: Writer, room_id: ShownRoom) -> RoomSettings:
    """Set the room's own settings; null removes one."""
    await lore.rooms.configure(room_id, await bodies.read_json(request, lambda changes: changes))
    return await get_room_settings(lore, room_id)


@rooms.get("/rooms/{room_id:id}/corrections")
async def list_corrections(
    lore: Reader,
    room_id: ShownRoom,
    limit: PageLimit,
    before: Annotated[int | None, Query(ge=1, le=MOST, description="The `next` of the page before.")] = None,
) -> CorrectionPage:
    """Return the log of corrected links of a room, the newest first."""
    page = await lore.links.corrections(room_id, before=before, limit=limit)
    return CorrectionPage(corrections=page, next=page[-1].number if len(page) == limit else None)


def _shown(lore: Lore, made: Digest, arguments: Mapping[str, Any]) -> ShownDigest:
    text = made.to_prompt(zone=lore.settings.search.zone) if "render" in arguments else None
    return made_from(ShownDigest, made, rendered=text)


_Since = Annotated[str | None, Query(max_length=MAX_WORDS, description=f"{TIME_IN_QUERY}; or `3 days ago`.")]
_Render = Annotated[Literal["prompt"] | None, Query(description="`prompt`: give the text for a model too.")]
add_routes(
    rooms,
    verbs.VERBS,
    {
        "rooms.rename": {"name": "rename_room"},
        "rooms.read": {"name": "mark_read"},
        "rooms.digest": {
            "name": "get_digest",
            "shown": _shown,
            "gives": ShownDigest,
            "also": {"since": (_Since, None), "render": (_Render, None)},
        },
    },
)
