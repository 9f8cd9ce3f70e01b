"""The pages of sessions: how full a conversation's window is, the context for a model, and checkpoints."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from starlette.responses import Response

from roomlore.core.errors import BudgetTooSmall, NotFound
from roomlore.core.models import StoredMessage
from roomlore.core.sessions.session import Checkpoint, Session, SessionContext
from roomlore.core.sessions.window import MAX_WINDOW
from roomlore.wiring import Lore
from roomlore_console.frame import Page, Tried
from roomlore_console.shell import name_scopes, rooms_named

_SESSIONS = 50
_CHECKPOINTS = 20
_MESSAGES = 40
_CHANGES = ("summarise", "reset")


@dataclass(frozen=True, slots=True)
class Gauge:
    """Tokens of a window, and their positions on a scale from 0 to 1,000. `turns`: everything except the summary."""

    window: int
    summary: int
    turns: int
    threshold: int

    @property
    def free(self) -> int:
        return max(0, self.window - self.summary - self.turns)

    def place(self, tokens: int) -> int:
        return min(1_000, round(1_000 * tokens / self.window))


@dataclass(frozen=True, slots=True)
class Seen:
    """The context for a model: its newest messages, and the number of the others."""

    context: SessionContext
    gauge: Gauge
    messages: list[StoredMessage]
    more: int


async def listed(page: Page) -> Response:
    """Return the page of sessions by conversation id, or those whose ids have the prefix searched for."""
    lore, begins, after = page.need("admin", "read"), page.asked("find"), page.asked("after") or None
    page_of_sessions = await _like(page, lore, begins, after) if begins else await _page(lore, after)
    await _name(page, *page_of_sessions)
    following = page_of_sessions[-1].conversation_id if len(page_of_sessions) >= _SESSIONS else None
    return page.show("sessions.html", sessions=page_of_sessions, next=following, after=after, begins=begins)


async def session(page: Page) -> Response:
    """Return the page of a session. The window is that of the settings or the requested one; the page records
    nothing."""
    lore, conversation_id, viewer = page.lore, page.needed("id"), page.viewer
    stored = await lore.sessions.find(conversation_id, viewer=viewer)
    before = page.number("before")
    checkpoints = await lore.sessions.checkpoints(conversation_id, before=before, limit=_CHECKPOINTS, viewer=viewer)
    query, tried, usual = page.asked("q"), Tried({}), lore.settings.sessions.model_context_window
    window = tried.read("window", lambda: page.number("window", most=MAX_WINDOW), None) or usual
    try:
        seen, trouble = await _seen(lore, stored, window, query, viewer), ""
    except BudgetTooSmall as error:
        seen, trouble = None, str(error)
    await _name(page, stored)
    return page.show(
        "session.html",
        tried.status,
        tried=tried,
        typed=page.asked("window") or window,
        session=stored,
        seen=seen,
        trouble=trouble,
        query=query,
        checkpoints=checkpoints,
        before=before,
        older=_older(checkpoints),
        state=_written(stored),
        done=page.asked("done"),
    )


async def confirm_change(page: Page) -> Response:
    """Return a page that says what would be done, with a form that does it."""
    what, lore = page.choice("what", _CHANGES), page.need("write")
    stored = await lore.sessions.find(page.needed("id"), viewer=page.viewer)
    await _name(page, stored)
    return page.show("session_change.html", what=what, session=stored)


async def done(page: Page) -> Response:
    what, lore, conversation_id, viewer = (
        page.choice("what", _CHANGES),
        page.need("write"),
        page.needed("id"),
        page.viewer,
    )
    if what == "reset":
        await lore.sessions.reset(conversation_id, viewer=viewer)
        return page.go("/session", id=conversation_id, done="reset")
    stored = await lore.sessions.find(conversation_id, viewer=viewer)
    job = await lore.sessions.begin_summary(conversation_id, viewer=viewer)
    return page.go("/session/summarising", job=job, id=conversation_id, was=stored.marks or None)


async def summarising(page: Page) -> Response:
    """Return the progress of a summary. The page reloads until it is over."""
    lore, conversation_id = page.lore, page.needed("id")
    newest = await lore.sessions.checkpoints(conversation_id, limit=1, viewer=page.viewer)
    job = await lore.jobs.get(page.needed("job"))
    if job.room_id != conversation_id:
        raise NotFound("conversation_job_unknown", conversation=f"{conversation_id!r:.80}", job=f"{job.job_id!r:.80}")
    made = newest[0] if newest and newest[0].number > (page.number("was") or 0) else None
    over = job.status not in ("waiting", "running")
    return page.show("summarising.html", job=job, over=over, made=made, conversation_id=conversation_id)


async def _page(lore: Lore, after: str | None) -> list[Session]:
    return await lore.sessions.page(after=after, limit=_SESSIONS, viewer=None)


async def _name(page: Page, *sessions: Session) -> None:
    """Look up the names of the rooms, people and agents of these sessions."""
    ids = [(stored.conversation_id, stored.user_id, stored.agent_key) for stored in sessions]
    await name_scopes(page, [f"group:{room}" for room, _, _ in ids])
    await name_scopes(page, [f"user:{who}" for _, user, agent in ids for who in (user, agent) if who])


async def _like(page: Page, lore: Lore, begins: str, after: str | None) -> list[Session]:
    """Return sessions whose ids have a prefix, and on a first page that they do not fill those with a part of the name
    or id. Ids are sorted, so they follow the position of the prefix itself."""
    following = await _page(lore, after or begins)
    like = [*takewhile(lambda stored: stored.conversation_id.startswith(begins), following)]
    if not after and len(like) < _SESSIONS:
        rooms = [begins, *(room.room_id for room in await rooms_named(page, begins, limit=_SESSIONS))]
        named = [await _stored_or_none(lore, room_id) for room_id in dict.fromkeys(rooms)]
        like = [*(stored for stored in named if stored and stored.version), *like]
    return list({stored.conversation_id: stored for stored in like}.values())


async def _stored_or_none(lore: Lore, conversation_id: str) -> Session | None:
    try:
        return await lore.sessions.find(conversation_id, viewer=None)
    except NotFound:
        return None


async def _seen(lore: Lore, stored: Session, window: int, query: str, viewer: str | None) -> Seen:
    context = await lore.sessions.preview_context(
        stored.conversation_id, query, model_context_window=window, viewer=viewer
    )
    ids = context.message_ids[-_MESSAGES:]
    async with lore.storage.reading(lore.tenant) as work:
        found = await work.messages.by_id(room_id=stored.conversation_id, message_ids=list(ids))
    messages = sorted((entry.message for entry in found), key=lambda one: one.arrival)
    return Seen(context, _gauge(lore, stored, context, window), messages, len(context.message_ids) - len(ids))


def _gauge(lore: Lore, stored: Session, context: SessionContext, window: int) -> Gauge:
    summary = min(stored.checkpoint.tokens if stored.checkpoint else 0, context.estimated_tokens)
    threshold = round(window * lore.settings.sessions.token_threshold_ratio)
    return Gauge(window, summary, context.estimated_tokens - summary, threshold)


def _written(stored: Session) -> str:
    """Return the callers' data of a session as JSON, without empty values; '' if all are empty."""
    kept = _full(stored.state)
    return json.dumps(kept, ensure_ascii=False, indent=2) if kept else ""


def _full(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    inner = {name: _full(inner_value) for name, inner_value in value.items()}
    return {name: inner_value for name, inner_value in inner.items() if inner_value not in (None, "", {}, [])}


def _older(checkpoints: Sequence[Checkpoint]) -> int | None:
    """Return the number below which there are more checkpoints; None if there are none."""
    last = checkpoints[-1].number if len(checkpoints) == _CHECKPOINTS else 1
    return last if last > 1 else None
