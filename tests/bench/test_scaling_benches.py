"""The benches of the page on scaling, small."""

import asyncio
import json
import os
import sys

import pytest
from bench.growth import CALLS
from bench.many_processes import Turn, family_ms, medians

from bench_command import bench


def _rows(database: str, *words: str) -> list[list[str]]:
    """Return the rows of the table that a bench prints, without its head."""
    printed = bench(*words, "--database", database)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines()]
    return [row for row in rows if row and "-" not in row[-1]][1:]


def test_each_route_is_timed_with_one_process_and_with_two(postgres_url):
    sizes = ("--messages", "4", "--requests", "20", "--turns", "1", "--warm", "8", "--connections", "8")
    rows = _rows(postgres_url, "processes", *sizes)
    routes = ["add a message", "context", "search", "add a message, a connection for each room"]
    assert [row[:2] for row in rows] == [[route, processes] for route in routes for processes in "12"]
    assert all(float(row[2].replace(",", "")) > 0 for row in rows)


def test_the_bytes_of_a_message_are_those_of_its_tables(postgres_url):
    rows = _rows(postgres_url, "storage-size", "--rooms", "2", "--messages", "100", "--dimensions", "16")
    sizes = {name: float(size.replace(",", "")) for name, size, _ in rows}
    assert {"`messages`", "`message_features`", "`message_words`", "`vectors`"} <= sizes.keys()
    assert sizes["`messages`"] > 100
    assert sizes["all"] >= sum(sizes.values()) - sizes["all"] - len(sizes)


def test_the_bytes_of_a_message_of_a_folder_of_rooms_are_counted(tmp_path):
    said = {"room_id": "r", "sender_id": "安", "text": "再部署一次 deploy"}
    lines = [json.dumps(said | {"id": f"m{number}", "sent_at": "2026-03-02T09:15:16"}) for number in range(3)]
    (tmp_path / "r.messages.jsonl").write_text("\n".join(lines), encoding="utf-8")
    where = ("--database", f"sqlite:///{tmp_path}/size.db", "--data", str(tmp_path), "--dimensions", "0")
    assert bench("storage-size", *where).startswith("3 messages of 22 bytes of text in 1 rooms;")


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_every_call_is_timed_in_stores_of_each_size(engine, request):
    where = ["--database", request.getfixturevalue("postgres_url")] if engine == "postgresql" else []
    words = ("growth", "--messages", "1000", "2000", "--room", "20", "--rounds", "1", "--verify")
    printed = bench(*words, *where)
    rows = [line.split("|")[1:-1] for line in printed.splitlines() if line.startswith("| ")][1:]
    assert [row[0].strip() for row in rows] == list(CALLS)
    assert all(float(cell.replace(",", "")) > 0 for row in rows for cell in row[1:])
    assert printed.count("verified in") == printed.count(" s: sound") == 2


async def test_a_family_has_the_processes_that_a_process_started():
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    try:
        assert {os.getpid(), child.pid} <= family_ms(os.getpid()).keys()
        assert family_ms(None) == {}
    finally:
        await child.communicate(b"\n")


def test_medians_are_of_each_figure_by_itself():
    assert medians([Turn(1, 9, 5, 0), Turn(2, 8, 6, 0), Turn(3, 7, 1, 0)]) == Turn(2, 8, 5, 0)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_the_past_of_a_scope_is_timed_in_logs_of_each_length(engine, request):
    where = ["--database", request.getfixturevalue("postgres_url")] if engine == "postgresql" else []
    printed = bench("as-of", "--entries", "60", "600", "--rounds", "1", *where)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines()[2:]]
    assert [row[0] for row in rows] == ["60", "600"]
    assert all(float(cell) > 0 for row in rows for cell in row[1:])
