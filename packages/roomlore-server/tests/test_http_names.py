"""A parameter that a path does not read is refused, and so is a time that cannot be read."""

from datetime import UTC, datetime

from fastapi.routing import APIRoute

from roomlore_server.http.routers import StrictRoute
from roomlore_testkit.case_table import all_cases

LENIENT = ("/v1/", "/v2/", "/v3/", "/api/v1/", "/health/", "/metrics", "/index")
"""Protocols of others, whose clients send what they like, and paths that monitors ask for."""


def test_every_path_of_roomlores_own_is_strict(app):
    seen = {(route.path, isinstance(route, StrictRoute)) for route in app.routes if isinstance(route, APIRoute)}
    assert len(seen) > 60
    assert {path for path, strict in seen if not strict and not path.startswith(LENIENT)} == set()
    assert {path for path, strict in seen if strict and path.startswith(LENIENT)} == set()


UNKNOWN = [
    ("/messages?room_id=tea&viewr=room:tea", "There is no parameter 'viewr' here; did you mean viewer?"),
    ("/messages/search?room_id=tea&q=x&Viewer=room:tea", "did you mean viewer?"),
    ("/messages/search?room_id=tea&q=x&lmit=3", "did you mean limit?"),
    ("/messages?room=tea", "did you mean room_id?"),
    ("/rooms/tea?zzzz=1", "There is no parameter 'zzzz' here; there are room_id, viewer."),
    ("/rooms?viewer=user:ann", "There is no parameter 'viewer' here"),
    ("/models?a=1", "There is no parameter 'a' here; leave it out."),
    ("/messages?room_id=tea&" + "x" * 900 + "=1", "There is no parameter 'xxx"),
    ("/messages?room_id=tea&%E6%9F%A5%E7%9C%8B=1", "There is no parameter '查看' here"),
]


async def test_an_unknown_parameter_is_refused_and_the_nearest_is_named(http, make_message):
    await http.post("/messages", json=make_message())
    with all_cases() as case:
        for path, says in UNKNOWN:
            with case(path):
                answer = await http.get(path)
                assert (answer.status_code, answer.json()["type"]) == (422, "urn:roomlore:invalid-input")
                assert says in answer.json()["detail"]
                assert len(answer.json()["detail"]) < 300


async def test_other_names_of_a_room_and_a_room_in_the_query_are_known(http, make_message):
    await http.post("/messages", json=make_message())
    for path in ("/messages?group_id=tea", "/messages?conversation_id=tea", "/rooms/-?room_id=tea"):
        assert (await http.get(path)).status_code == 200


async def test_protocols_of_others_and_monitors_may_send_what_they_like(http):
    for path in ("/v1/ping/?beta=true", "/v1/models?api-version=2024-05-01", "/health/live?probe=1", "/metrics?x=1"):
        assert (await http.get(path)).status_code == 200, path


async def test_a_time_that_cannot_be_read_is_refused(http, make_message):
    with all_cases() as case:
        for time in ("yesterday", "昨天", "2024-13-01", "", "12:30", 1e300, "2024-05-01T25:00:00Z"):
            with case(time):
                for body, place in (
                    (make_message(sent_at=time), "sent_at"),
                    ({"messages": [make_message(1), make_message(2, timestamp=time)]}, "messages[1]: sent_at"),
                ):
                    answer = await http.post("/messages", json=body)
                    assert answer.status_code == 422, answer.text
                    assert answer.json()["detail"].startswith(f"{place} is ")
                assert (await http.get("/messages?room_id=tea")).status_code == 404


async def test_a_message_to_reply_to_needs_a_readable_time_too(http):
    said = {"id": "1", "sender_id": "ann", "text": "hi", "sent_at": "soon"}
    answer = await http.post("/chat/sse", json={"room_id": "tea", "message": said})
    assert answer.status_code == 422
    assert "message: sent_at is 'soon'" in answer.json()["detail"]


async def test_a_message_without_a_time_is_sent_now(http, make_message):
    begun = datetime.now(UTC)
    await http.post("/messages", json=make_message(1, sent_at="2024-05-01T12:30:00Z"))
    await http.post("/messages", json={"messages": [make_message(2), make_message(3, sent_at=None)]})
    first, *page = (await http.get("/messages?room_id=tea")).json()["messages"]
    assert (first["sent_at"], first["sent_at_estimated"]) == ("2024-05-01T12:30:00+00:00", False)
    assert all(begun <= datetime.fromisoformat(one["sent_at"]) <= datetime.now(UTC) for one in page)
    assert [one["sent_at_estimated"] for one in page] == [True, True]


async def test_a_message_whose_time_another_store_estimated_stays_estimated(http, make_message):
    told = {"sent_at": "2024-05-01T12:30:00Z", "sent_at_estimated": True}
    heard = {"heard_from": "2024-05-01T12:30:00Z", "heard_until": "2024-05-01T13:00:00Z"}
    await http.post("/messages", json={"messages": [make_message(1, **told, **heard), make_message(2, **told)]})
    page = (await http.get("/messages?room_id=tea")).json()["messages"]
    assert [(one["sent_at"], one["sent_at_estimated"]) for one in page] == [("2024-05-01T12:30:00+00:00", True)] * 2
    again = await http.post("/messages", json=make_message(1))
    assert again.json()["duplicates"] == [make_message(1)["id"]]
