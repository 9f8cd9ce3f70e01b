"""`roomlore mcp` as a process of its own: its standard streams, its end, and several on one database."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import roomlore
from forked_process import ForkedProgram, run_forked
from mcp_rig import ANNA, DATABASE, ask, command, fill, on_standard_streams


@contextmanager
def started(*arguments: str) -> Iterator[ForkedProgram]:
    """A process whose log is in mcp.log."""
    with Path("mcp.log").open("wb") as log:
        process = ForkedProgram("roomlore", "--db", DATABASE, "mcp", *arguments, error=log.fileno())
        try:
            yield process
        finally:
            process.close()


def say(process: ForkedProgram, *lines: dict) -> None:
    process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines).encode())


async def test_two_processes_at_once_on_one_database():
    fill()
    async with on_standard_streams("--scope", ANNA) as one, on_standard_streams("--scope", ANNA) as other:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(ask((one, other)[number % 2], "add_memory", statement=f"第 {number} cup"))
        seen = [await ask(client, "get_memories", limit=50) for client in (one, other)]
    assert seen[0] == seen[1]
    assert seen[0]["total"] == 20


def test_standard_output_is_protocol_alone():
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    with started("--scope", ANNA) as process:
        process.stdin.write("not json 茶\n".encode())
        say(
            process,
            {"id": 1, "method": "initialize", "params": begin},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "get_memories", "arguments": {}}},
        )
        said = []
        while not any(line.get("id") == 2 for line in said):
            said.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        said += [json.loads(line) for line in process.stdout]
        assert process.wait(120) == 0
    log = Path("mcp.log").read_bytes()
    assert all(line["jsonrpc"] == "2.0" for line in said)
    assert next(line for line in said if line.get("id") == 1)["result"]["serverInfo"]["name"] == "roomlore"
    assert b"get_memories" in log
    assert b"Traceback" not in log


def test_a_bad_scope_and_a_missing_extra_are_a_sentence():
    bad = run_forked("roomlore", "--db", DATABASE, "mcp", "--scope", "anna")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert (
        bad.stderr
        == "roomlore: A scope is group:<id>, user:<id> or agent:<id>, not 'anna'; write 'group:anna' or 'user:anna'.\n"
    )
    program, flag, code, *rest = command()
    without = [program, flag, f"import sys; sys.modules['mcp'] = None; {code}", *rest]
    bare = subprocess.run(without, capture_output=True, timeout=500, check=False)
    assert (bare.returncode, bare.stdout) == (1, b"")
    assert bare.stderr.endswith(b"(mcp is missing): pip install 'roomlore[mcp]'.\n")
    assert not Path(DATABASE).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_told_to_stop_ends_in_good_order(number):
    call = {"name": "add_memory", "arguments": {"statement": "安娜 likes tea"}}
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    with started("--scope", ANNA) as process:
        say(
            process,
            {"id": 1, "method": "initialize", "params": begin},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        )
        while json.loads(process.stdout.readline()).get("id") != 2:
            pass
        process.send_signal(number)
        assert process.wait(120) == 0
    assert b"Traceback" not in Path("mcp.log").read_bytes()
    with roomlore.open_sync(DATABASE) as lore:
        assert [one.statement for one in lore.memories.page(ANNA)] == ["安娜 likes tea"]
