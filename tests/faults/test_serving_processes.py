"""`roomlore serve --workers`: several processes behind one port, and what becomes of them."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from forked_process import run_forked
from roomlore_server.http.process_metrics import merged

SECONDS = 120


@contextmanager
def serving(database: str, *, workers: int = 2):
    """Yields (process, URL) of a server of several processes."""
    program = [sys.executable, "-m", "roomlore", "--db", database, "serve", "--port", "0", "--workers", str(workers)]
    environment = {**os.environ, "MEMORY_LOG_LEVEL": "error"}
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process, re.search(r"http://[^ ]+", process.stdout.readline())[0]
        finally:
            process.kill()


def children(process: subprocess.Popen) -> set[int]:
    """Return the ids of the processes that serve."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    named = {int(one): Path(f"/proc/{one}/cmdline").read_bytes() for one in listed if Path(f"/proc/{one}").exists()}
    return {one for one, line in named.items() if b"spawn_main" in line}


def until(true, what: str):
    ends = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < ends, what
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def message(number: int) -> dict:
    return {"id": f"m{number}", "room_id": "茶", "sender_id": "ann", "text": f"Tea number {number}, 第 {number} 杯茶"}


def served_by(url: str) -> set[str]:
    return set(re.findall(r'roomlore_http_request_seconds_count\{process="(\d)"', httpx.get(f"{url}/metrics").text))


def test_what_one_process_stored_the_others_know_at_once(postgres_url):
    with serving(postgres_url) as (process, url):
        for number in range(12):  # each request on a connection of its own, so that the processes take turns
            stored = httpx.post(f"{url}/messages", json={"messages": [message(number)]}, timeout=SECONDS)
            assert stored.json()["added"] == [f"m{number}"]
            asked = {"room_id": "茶", "message_id": f"m{number}", "max_messages": 50, "strategy": "recent"}
            context = httpx.post(f"{url}/context", json=asked, timeout=SECONDS).json()
            assert [one["message"]["id"] for one in context["messages"]] == [f"m{n}" for n in range(number)]
            found = httpx.get(
                f"{url}/messages/search", params={"room_id": "茶", "q": f"第 {number} 杯茶"}, timeout=SECONDS
            )
            assert f"m{number}" in [one["message"]["id"] for one in found.json()["hits"]]
        until(lambda: served_by(url) == {"0", "1"}, "both have served, and their metrics are told together")
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0


def test_a_process_that_is_killed_is_started_anew(tmp_path):
    with serving(f"{tmp_path}/chat.db") as (process, url):
        before = children(process)
        assert len(before) == 2
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        until(lambda: len(children(process) - {killed}) == 2, "another one took its place")
        for number in range(10):
            answer = httpx.post(f"{url}/messages", json={"messages": [message(number)]}, timeout=SECONDS)
            assert answer.status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def test_no_process_is_left_behind(tmp_path):
    with serving(f"{tmp_path}/chat.db") as (process, _):
        started = children(process)
        process.kill()
        until(lambda: not any(map(is_alive, started)), "they end with the one that started them")


def test_a_server_that_cannot_start_says_why(tmp_path):
    done = run_forked("roomlore", "--db", f"{tmp_path}/chat.db", "serve", "--workers", "2", "--host", "0.0.0.0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no API key exists" in done.stderr


@pytest.mark.parametrize("second", [b"", b'# HELP a b c\n# TYPE a counter\na{x="\\"{"} 2.0\n'])
def test_metrics_are_joined_by_family(second):
    first = b'# HELP a b c\n# TYPE a counter\na{x="1"} 1.0\n# HELP n of\n# TYPE n gauge\nn 3.0\n'
    lines = merged({0: first, 1: second}).decode().splitlines()
    assert lines[:3] == ["# HELP a b c", "# TYPE a counter", 'a{process="0",x="1"} 1.0']
    of_second = ['a{process="1",x="\\"{"} 2.0'] * bool(second)
    assert lines[3:] == [*of_second, "# HELP n of", "# TYPE n gauge", 'n{process="0"} 3.0']
