"""Deleting a room over HTTP."""

import pytest

from roomlore import Message, Source


@pytest.fixture
async def tea(lore):
    said = [Message(id=f"{n}", room_id="tea", sender_id="ann", text=f"{n} cups 杯茶") for n in range(5)]
    await lore.messages.add([*said, Message(id="1", room_id="a/b", sender_id="ann", text="hello")])
    return await lore.memories.add("user:ann", "drinks tea", sources=[Source("tea", "1")])


async def test_it_is_asked_first_counted_and_done(http, lore, tea):
    refused = await http.delete("/rooms/tea")
    assert refused.status_code == 422
    for part in ("confirm=true", "the room 'tea' would remove or change messages: 5"):
        assert part in refused.json()["detail"]
    chinese = await http.delete("/rooms/tea", headers={"Accept-Language": "zh"})
    assert "消息: 5" in chinese.json()["detail"]
    would = (await http.delete("/rooms/tea", params={"dry_run": "true", "confirm": "true"})).json()
    assert (would["status"], would["dry_run"], would["retired"]) == ("counted", True, [tea.memory_id])
    assert (await http.get("/rooms/tea")).status_code == 200
    done = await http.delete("/rooms/tea", params={"confirm": "true"})
    assert done.status_code == 200, done.text
    told = done.json()
    assert (told["status"], told["dry_run"], told["complete"]) == ("done", False, True)
    for name in ("places", "retired", "rewritten", "stays"):
        assert told[name] == would[name]
    assert (await http.get(f"/jobs/{told['job_id']}")).json()["status"] == "done"
    assert (await http.get("/rooms/tea")).status_code == 404
    assert (await http.delete("/rooms/tea", params={"confirm": "true"})).status_code == 404
    assert (await http.delete("/rooms/a%2Fb", params={"confirm": "true"})).status_code == 200
    assert await lore.rooms.page() == []


async def test_nobody_adds_to_a_room_that_is_being_deleted(http, lore, tea, monkeypatch):
    monkeypatch.setattr("roomlore_server.http.room_routes._MAX_WAITED", 0.0)
    monkeypatch.setattr("roomlore.services.privacy.RoomDeletions._go", _never)
    going = await http.delete("/rooms/tea", params={"confirm": "true"})
    assert (going.status_code, going.json()["status"]) == (202, "running")
    refused = await http.post("/messages", json={"id": "9", "room_id": "tea", "sender_id": "ann", "text": "more"})
    assert (refused.status_code, "'tea' is being deleted" in refused.json()["detail"]) == (409, True)
    assert (await http.delete("/rooms/tea", params={"dry_run": "true"})).status_code == 409
    again = await http.delete("/rooms/tea", params={"confirm": "true"})
    assert again.json()["job_id"] == going.json()["job_id"]


async def _never(*_: object, **__: object) -> None:
    raise RuntimeError("down")
