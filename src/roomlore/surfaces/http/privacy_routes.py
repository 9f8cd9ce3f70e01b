"""Forgetting a person, and checking what is stored, over HTTP."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.intake import scope_of
from roomlore.core.privacy.report import ForgetReport
from roomlore.surfaces.http import bodies
from roomlore.surfaces.http.guard import Reader, Writer
from roomlore.surfaces.http.replies import reply
from roomlore.surfaces.long_work import LongWork
from roomlore.surfaces.plain import plain

privacy = APIRouter(prefix="/privacy", tags=["privacy"])

_MOST_WAITED = 30.0


class ForgetRequest(bodies.Body):
    """Whom to forget."""

    user_id: str = Field(min_length=1, max_length=MAX_ID_CHARS, description="The sender id that the messages have.")
    dry_run: bool = Field(False, description="Change nothing; say what would go.")
    confirm: bool = Field(False, description="True, to do it: it cannot be undone.")


class LeftView(BaseModel):
    place: str
    count: int
    why: str = Field(description="What hinders it, and what to do.")


class ForgetView(BaseModel):
    """What went, or with `dry_run` what would go."""

    success: Literal[True]
    user_id: str
    dry_run: bool
    complete: bool = Field(description="Nothing is left that roomlore can reach.")
    places: dict[str, int] = Field(description="How many entries were removed or rewritten, by place.")
    rooms_removed: list[str]
    retired: list[str] = Field(description="Memories that are in force no more, since they rested on the person alone.")
    rewritten: list[str] = Field(description="Memories that stay, without the person.")
    left: list[LeftView] = Field(description="What is still there, and why; asking again goes on with it.")
    checked: dict[str, int] = Field(description="How many rows were looked through when all was done, by table.")
    started_at: datetime
    finished_at: datetime


class Forgetting(BaseModel):
    """It is not done yet."""

    success: Literal[True]
    user_id: str
    status: Literal["running"]


class FaultView(BaseModel):
    check: str = Field(description="Which check found it.")
    where: str = Field(description="The scope, room, memory, message or mark.")
    found: str = Field(description="What is wrong there.")
    mend: str = Field(description="What to do about it.")


class NoteView(BaseModel):
    where: str
    found: str


class VerifyView(BaseModel):
    """What a check of what is stored found."""

    success: Literal[True]
    sound: bool = Field(description="No check found a fault.")
    checked: dict[str, int] = Field(description="How many of each were looked at.")
    counts: dict[str, int] = Field(description="How many faults there are, by check.")
    faults: list[FaultView] = Field(description="At most 1,000.")
    notes: list[NoteView] = Field(description="What to know that is no fault.")
    started_at: datetime
    finished_at: datetime


_LATER: dict[int | str, dict[str, Any]] = {
    202: {"model": Forgetting, "description": "It goes on. The same request again waits for it."}
}


@privacy.post("/forget", response_model=ForgetView, responses=_LATER, openapi_extra=bodies.documented(ForgetRequest))
async def forget(
    request: Request, lore: Writer, wanted: Annotated[ForgetRequest, Depends(bodies.body_of(ForgetRequest))]
) -> Response:
    """Removes what a person said and what follows from it. Without `confirm` nothing is done but saying what would.

    What takes longer than 30 seconds goes on and is answered with 202; the same request waits for it. Where the server
    ends before it does, the same request takes it up."""
    if wanted.dry_run:
        return reply(_told(await lore.privacy.forget(wanted.user_id, dry_run=True)))
    if not wanted.confirm:
        raise _unconfirmed(await lore.privacy.forget(wanted.user_id, dry_run=True))
    work: LongWork = request.app.state.long_work
    name = ("forget", lore.tenant, wanted.user_id)
    report = await work.wait(name, lambda: lore.privacy.forget(wanted.user_id), seconds=_MOST_WAITED)
    if report is None:
        return reply({"success": True, "user_id": wanted.user_id, "status": "running"}, 202)
    return reply(_told(report))


@privacy.get("/verify", response_model=VerifyView)
async def verify(
    lore: Reader,
    group_id: Annotated[
        str | None, Query(min_length=1, description="Only this group or scope, such as user:anna; by default all.")
    ] = None,
) -> Response:
    """Reads all that is remembered, and of a whole tenant its messages too, and says what does not hold together.
    Changes nothing."""
    report = await lore.privacy.verify(None if group_id is None else scope_of(group_id))
    faults = [{**plain(one), "mend": one.mend} for one in report.faults]
    return reply({"success": True, **plain(report), "faults": faults, "sound": report.sound})


def _told(report: ForgetReport) -> dict[str, object]:
    return {"success": True, **plain(report), "complete": report.complete}


def _unconfirmed(would: ForgetReport) -> InvalidInput:
    places = ", ".join(f"{count} in {place}" for place, count in would.places.items()) or "nothing"
    return InvalidInput(
        f"This cannot be undone. Send `confirm: true` to do it. Of {would.user_id!r:.80} would go: {places};"
        f" {len(would.retired)} memories would be retired. `dry_run: true` tells all of it."
    )
