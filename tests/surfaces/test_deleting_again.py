"""What was deleted, revoked or taken back stays so: the same again changes nothing and is no error. What never was here
is one."""

import asyncio

import pytest
from typer.testing import CliRunner

import roomlore
from roomlore.core.errors import NotFound
from roomlore.surfaces.cli.app import app as program
from roomlore_testkit.case_table import all_cases

ROOM = "tea"


async def filled(lore) -> tuple[str, str]:
    """Fill the store with something to delete of each kind. Return the ids of a memory and of a key."""
    await lore.messages.add([roomlore.Message(id=f"m{n}", room_id=ROOM, sender_id="ann", text="Hi") for n in range(4)])
    await lore.rooms.add_members(ROOM, ["ann", "bob"])
    await lore.links.correct(ROOM, "m3", answers="m0")
    memory_id = (await lore.memories.add("group:tea", "Green tea is best.")).memory_id
    await lore.memories.share(memory_id, "everyone")
    key, _ = await lore.keys.create("bot")
    return memory_id, key.key_id


async def test_in_the_library(lore):
    memory_id, key_id = await filled(lore)
    table = {
        "a correction": (lambda one: lore.links.undo(ROOM, one), "m3"),
        "a message": (lambda one: lore.messages.delete(ROOM, one), "m1"),
        "a share": (lambda one: lore.memories.unshare(one, "everyone"), memory_id),
        "a memory": (lore.memories.delete, memory_id),
        "a key": (lore.keys.revoke, key_id),
        "a member": (lambda one: lore.rooms.remove_members(ROOM, [one]), "bob"),
    }
    with all_cases() as case:
        for name, (delete, known) in table.items():
            with case(name):
                await delete(known)
                await delete(known)
                if name == "a message":
                    assert await delete(known) == await delete("m9") == 0, "it tells how many there were"
                elif name != "a member":
                    with pytest.raises(NotFound):
                        await delete("nobody")


async def test_over_http(lore, connect):
    memory_id, _ = await filled(lore)
    _, key = await lore.keys.create("admin", scopes=["read", "write", "admin"])
    fact_id = (await lore.memories.add("user:ann", "Likes tea.")).memory_id
    table = {
        f"/messages/{ROOM}/%/link": "m3",
        f"/messages/{ROOM}/%": "m1",
        "/memory/%/share?with=everyone": memory_id,
        "/memory/%": memory_id,
        "/facts/%": fact_id,
    }
    with all_cases() as case:
        async with connect(key=key) as http:
            for path, known in table.items():
                with case(path):
                    told = [(await http.delete(path.replace("%", one))).status_code for one in (known, known, "nobody")]
                    assert told[0] == told[1] in (200, 204)
                    assert told[2] == 404


async def test_a_body_of_a_delete_is_refused_and_nothing_is_deleted(lore, connect):
    memory_id, _ = await filled(lore)
    _, key = await lore.keys.create("admin", scopes=["read", "write", "admin"])
    async with connect(key=key) as http:
        for path in (f"/memory/{memory_id}", f"/messages/{ROOM}/m1"):
            answer = await http.request("DELETE", path, json={"expected": "another"})
            assert (answer.status_code, answer.json()["detail"][:26]) == (422, "DELETE takes no body here;")
        assert (
            "are expected, memory_id, reason, viewer."
            in (await http.request("DELETE", "/facts/x", content=b"{}")).json()["detail"]
        )
    assert (await lore.memories.get(memory_id)).status == "active"
    assert len(await lore.messages.page(ROOM)) == 4


async def _fill(url: str) -> tuple[str, str]:
    async with roomlore.open(url, background=False) as lore:
        return await filled(lore)


def test_on_the_command_line(tmp_path):
    database = str(tmp_path / "chat.db")

    def run(*arguments: str, code: int = 0):
        result = CliRunner().invoke(program, ["--db", database, *arguments])
        assert result.exit_code == code, (result.output, result.exception)
        return result.stdout + result.stderr

    memory_id, key_id = asyncio.run(_fill(database))
    table = (
        (("links", "undo", ROOM, "%"), "m3"),
        (("messages", "delete", ROOM, "%", "--yes"), "m1"),
        (("share", "%", "everyone", "--end"), memory_id),
        (("memory", "delete", "%", "--yes"), memory_id),
        (("keys", "revoke", "%"), key_id),
    )
    with all_cases() as case:
        for arguments, known in table:
            with case(arguments):
                for one, code in ((known, 0), (known, 0), ("nobody", 1)):
                    run(*(one if part == "%" else part for part in arguments), code=code)
