"""Every call of sessions and contexts that tells what was said: who may not see all of the room learns nothing and
changes nothing, as if the room were not there."""

import inspect

import pytest

import roomlore
from roomlore import Message, NotFound
from roomlore.services.contexts import ContextService
from roomlore.services.sessions import SessionService
from roomlore_testkit import START

SESSIONS = {
    "create_session": {"user_id": "eve"},
    "get_session": {},
    "find": {},
    "patch_state": {"patch": {"global_state": {"current_intent": "x"}}},
    "query_context": {"enterprise_id": "x"},
    "preview_context": {},
    "query_window": {},
    "checkpoint": {"summary": "nothing", "covers_through": "m1"},
    "summarise": {},
    "begin_summary": {},
    "reset": {},
    "checkpoints": {},
    "messages": {},
}
CONTEXTS = {"build": {}, "compare": {}}
WRITING = {"write_turn", "add_messages"}
"""They only add, and tell nothing that was said."""


@pytest.fixture
async def lore():
    async with roomlore.open("sqlite://", background=False) as opened:
        for room, who in (("den", "ann"), ("square", "eve")):
            await opened.sessions.create_session(room, who)
            await opened.messages.add(Message(id="m1", room_id=room, sender_id=who, text="hello", sent_at=START))
        await opened.rooms.set_kind("den", "direct")
        await opened.rooms.set_kind("square", "public")
        yield opened


def taking(service: type, name: str) -> set[str]:
    """Return the public calls that take a parameter."""
    calls = inspect.getmembers(service, inspect.iscoroutinefunction)
    return {call for call, its in calls if call[0] != "_" and name in inspect.signature(its).parameters}


def test_every_call_takes_a_viewer():
    assert taking(SessionService, "conversation_id") - WRITING == SESSIONS.keys()
    assert taking(ContextService, "room_id") == CONTEXTS.keys()
    assert taking(SessionService, "viewer") - {"page"} == SESSIONS.keys()
    assert taking(ContextService, "viewer") - {"usage", "respond", "feedback"} == CONTEXTS.keys()


@pytest.mark.parametrize(("name", "given"), [*SESSIONS.items(), *CONTEXTS.items()])
async def test_who_may_not_see_the_room_is_refused(lore, name, given):
    call = getattr(lore.sessions if name in SESSIONS else lore.context, name)
    before = await lore.sessions.find("den")
    for viewer in ("user:eve", "room:square", "user:nobody"):
        with pytest.raises(NotFound, match="that the viewer may see") as hidden:
            await call("den", **given, viewer=viewer)
        with pytest.raises(NotFound) as missing:
            await call("none", **given, viewer=viewer)
        assert str(hidden.value).replace("'den'", "'none'") == str(missing.value)
    assert await lore.sessions.find("den") == before
    for viewer in ("user:ann", "room:den", None):
        await call("den", **given, viewer=viewer)


@pytest.mark.parametrize(
    ("viewer", "seen"),
    [
        ("user:ann", ["den", "square"]),
        ("user:eve", ["square"]),
        ("room:den", ["den", "square"]),
        ("room:new", ["square"]),
    ],
)
async def test_sessions_are_listed_that_the_viewer_may_see(lore, viewer, seen):
    for limit in (1, 100):
        found = await lore.sessions.page(viewer=viewer, limit=limit)
        assert [one.conversation_id for one in found] == seen[:limit]
    assert [one.conversation_id for one in await lore.sessions.page(viewer=viewer, after="den")] == ["square"]
