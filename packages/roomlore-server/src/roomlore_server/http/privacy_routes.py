"""Routes of privacy: what may be shown to whom, which memories a room is shown and why, who may know a memory, and
shares; forgetting a person, and checking stored data."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

from fastapi import Depends, Query
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from roomlore.core.audience import MAX_NAME_CHARS
from roomlore.core.errors import Forbidden, InvalidInput, NameNotId, NotFound
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.integrity import VerifyReport
from roomlore.core.memory.memory import MAX_GROUP_CHARS
from roomlore.core.memory.writing import MAX_REASON, scope_of
from roomlore.core.privacy import PLACES_IN_WORDS, ForgetReport
from roomlore.core.texts import Phrase
from roomlore.core.visibility import SeenIn
from roomlore.surfaces import long_work
from roomlore.surfaces.jsonable import made_from
from roomlore.verbs.memories import VISIBLE
from roomlore.wiring import Lore
from roomlore_server.http import bodies, problems
from roomlore_server.http.answers import SuccessResponse, reply
from roomlore_server.http.derived import add_route
from roomlore_server.http.guard import Admin, ShownTo, Writer
from roomlore_server.http.memory_routes import OneMemory, one_memory
from roomlore_server.http.paths import MemoryId, Reason
from roomlore_server.http.routers import Router
from roomlore_server.shapes import model_of

privacy = Router(prefix="/privacy", tags=["privacy"])

_MAX_WAITED = 30.0
_RETRY_SECONDS = "10"


class _Asked(TypedDict):
    seconds: float
    same_words: bool


class ForgetRequest(bodies.Body):
    """The person to forget."""

    model_config = ConfigDict(json_schema_extra=bodies.needs_one("dry_run", "confirm", const=True))

    user_id: str = Field(min_length=1, max_length=MAX_ID_CHARS, description="The sender id that the messages have.")
    dry_run: bool = Field(False, description="Change nothing; say what would go.")
    same_words: bool = Field(
        False, description="Also redact what others said later in the same words, in rooms that both spoke in."
    )
    is_id: bool = Field(
        False,
        description="It is an id, even if nobody is known by it and people have it as a name: else that is a 422.",
    )
    confirm: bool = Field(False, description="True, to do it: it cannot be undone.")


@dataclass(frozen=True, kw_only=True)
class ForgetView(ForgetReport, SuccessResponse):
    """The rows that were removed, or with `dry_run` would be. `found`: false if nothing of the id is here: then it may
    be misspelt. `message`: the same for people; empty if anything is here."""

    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Forgetting(SuccessResponse):
    """Forgetting in progress."""

    user_id: str
    status: Literal["running"] = "running"


@dataclass(frozen=True, kw_only=True)
class Checking(SuccessResponse):
    """A check in progress."""

    status: Literal["running"] = "running"


@dataclass(frozen=True, kw_only=True)
class VerifyView(VerifyReport, SuccessResponse):
    """The result of a check of stored data."""


def _later(answer: type, counted: str) -> dict[int | str, dict[str, Any]]:
    return {
        202: {"model": model_of(answer), "description": "It goes on. The same request again waits for it."},
        429: {
            "description": f"{counted} are under way for the tenant as there may be at a time.",
            "content": {problems.MEDIA_TYPE: {"schema": problems.Problem.model_json_schema()}},
        },
    }


@privacy.post(
    "/forget",
    responses=_later(Forgetting, "As many dry runs"),
    openapi_extra=bodies.described(ForgetRequest),
)
async def forget(
    request: Request, lore: Admin, wanted: Annotated[ForgetRequest, Depends(bodies.body_of(ForgetRequest))]
) -> ForgetView | Response:
    """Remove what a person said and what was derived from it. Without `confirm` nothing is removed:
    the answer is a 422 that says what would be, or a 404 if nothing of the id is here. With `dry_run` or `confirm`
    `found` is false then.

    It is a job, which is stored before it begins and goes on after a restart of the server: `GET /jobs?kind=forgetting`
    lists it. If it takes more than 30 seconds, the answer is a 202. The same request waits for it, or returns its
    result of the last two minutes.
    """
    work, user_id = request.app.state.long_work, wanted.user_id
    options: _Asked = {"seconds": _MAX_WAITED, "same_words": wanted.same_words}
    if not (wanted.is_id or work.knows(long_work.forgetting(lore, user_id, same_words=wanted.same_words))):
        await _check_person(lore, user_id)
    if wanted.confirm and not wanted.dry_run:
        return _answer_of(request, user_id, await long_work.forget(work, lore, user_id, **options))
    would = await long_work.would_forget(work, lore, user_id, **options)
    if not wanted.dry_run:
        raise _unconfirmed(request, user_id, would.report)
    if would.full:
        raise _too_many("counts of what forgetting somebody would remove")
    return _answer_of(request, user_id, would.report)


async def _check_person(lore: Lore, user_id: str) -> None:
    try:
        await lore.privacy.check_person(user_id)
    except NameNotId as error:
        raise NameNotId("person_named_in_body", error=error) from error


@privacy.get("/verify", responses=_later(Checking, "As many checks"))
async def verify(
    request: Request,
    lore: Admin,
    group_id: Annotated[
        str | None,
        Query(
            min_length=1,
            description="Only this group, by its id or name, or scope, such as user:anna; by default all.",
            json_schema_extra={"maxLength": MAX_GROUP_CHARS},
        ),
    ] = None,
) -> VerifyView | Response:
    """Check the integrity of memories and messages, of a whole tenant or of one group. Changes nothing.

    Work of more than 30 seconds continues and is answered with 202. The same request waits for it, or returns its
    result of the last two minutes. At most three checks of a tenant run at a time.
    """
    scope = None if group_id is None else await lore.rooms.scope_named(scope_of(group_id), viewer=None)
    outcome = await long_work.verify(request.app.state.long_work, lore, scope, seconds=_MAX_WAITED)
    if outcome.full:
        raise _too_many("checks")
    report = outcome.report
    if report is None:
        return reply(Checking(), 202)
    return made_from(VerifyView, report)


def _answer_of(request: Request, user_id: str, report: ForgetReport | None) -> ForgetView | Response:
    if report is None:
        return reply(Forgetting(user_id=user_id), 202)
    unknown = Phrase("person_unknown_to_forget", user=f"{user_id!r:.80}")
    message = "" if report.found else problems.in_language(request.scope, unknown)
    return made_from(ForgetView, report, message=message)


def _too_many(what: str) -> problems.Refused:
    reason = f"{long_work.MAX_AT_A_TIME} {what} are under way for this tenant, the most there may be at a time."
    return problems.Refused(429, f"{reason} Wait until one has ended; then ask again.", {"Retry-After": _RETRY_SECONDS})


def _unconfirmed(request: Request, user_id: str, would: ForgetReport | None) -> InvalidInput | NotFound:
    """Return the error for a missing `confirm`. `would`: None if counting takes longer than the request may wait."""
    if would is None:
        return InvalidInput("forgetting_unconfirmed_uncounted", user=f"{user_id!r:.80}")
    if not (would.found or would.left):
        return NotFound("person_unknown_to_forget", user=f"{user_id!r:.80}")
    goes = {PLACES_IN_WORDS.get(place, place): count for place, count in would.places.items()}
    goes |= {"whole rooms": len(would.rooms_removed), "memories that are retired": len(would.retired)}
    places = ", ".join(f"{problems.in_language(request.scope, what)}: {count}" for what, count in goes.items() if count)
    return InvalidInput("forgetting_unconfirmed", user=f"{user_id!r:.80}", places=places)


_TARGET = "^(everyone|room:.+)$"
_WITH = "With whom: room:<id or name> or everyone."
_LONGEST = len("room:") + MAX_NAME_CHARS


class ShareRequest(bodies.Body):
    """With whom a memory is shared."""

    with_: str = Field(
        alias="with", max_length=_LONGEST, description=_WITH, json_schema_extra={"pattern": _TARGET, "minLength": 1}
    )
    reason: str = Field("", description="Why, for the history.", json_schema_extra={"maxLength": MAX_REASON})


@dataclass(frozen=True, kw_only=True)
class WhoMaySee(SuccessResponse, SeenIn):
    """The rooms in which a version of a memory may be shown now. `everyone`: it is for all. `rooms`: their ids; empty
    if it is for all. `hidden_in`: how many other rooms there are."""

    memory_id: str


audience = Router(tags=["audience"])
add_route(audience, VISIBLE, "list_visible")


@audience.get("/memory/{memory_id:id}/visible")
async def get_who_may_see(lore: Admin, memory_id: MemoryId) -> WhoMaySee:
    """Return in which rooms this version of a memory may be shown now."""
    return made_from(WhoMaySee, await lore.memories.seen_in(memory_id), memory_id=memory_id)


@audience.put("/memory/{memory_id:id}/share", openapi_extra=bodies.described(ShareRequest))
async def share_memory(
    lore: Writer,
    viewer: ShownTo,
    memory_id: MemoryId,
    wanted: Annotated[ShareRequest, Depends(bodies.body_of(ShareRequest))],
) -> OneMemory:
    """Share a memory with a room or with everyone, beside those who heard it. A key without the scope admin names the
    person it is about as viewer."""
    await lore.memories.check_shown(memory_id, viewer)
    target = await _target(lore, wanted.with_, viewer)
    done = await lore.memories.share(memory_id, target, by=_person(viewer), reason=wanted.reason)
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
    reason: Reason = None,
) -> OneMemory:
    """End a share, as the person that the memory is about or as an administrator."""
    await lore.memories.check_shown(memory_id, viewer)
    if target not in (await lore.memories.head(memory_id, viewer=None)).shared_with:
        target = await _target(lore, target, viewer)
    done = await lore.memories.unshare(memory_id, target, by=_person(viewer), reason=reason or "")
    return one_memory((await lore.memories.as_told([done], viewer))[0], lore)


async def _target(lore: Lore, given: str, viewer: str | None) -> str:
    """Return with whom a memory is shared, with the id of a room in place of its name."""
    kind, _, room = given.partition(":")
    return f"room:{await lore.rooms.named(room, viewer=viewer, or_new=True)}" if kind == "room" and room else given


def _person(viewer: str | None) -> str | None:
    """Return the id of the person who shares, None for an administrator. Raise `Forbidden` for a room."""
    if viewer is None:
        return None
    kind, _, name = viewer.partition(":")
    if kind != "user":
        raise Forbidden("share_of_room")
    return name
