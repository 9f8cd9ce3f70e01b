"""The bench of HTTP routes, small: every route is timed beside the bare one, and a failed request stops it."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench.http_load import Failed, Route, ask, processor_ms, routes

ROOT = Path(__file__).parents[2]


def test_every_route_is_timed_beside_the_bare_one():
    sizes = ("--messages", "8", "--requests", "6", "--turns", "2", "--warm", "4")
    command = (sys.executable, "-m", "bench", "http", *sizes)
    ended = subprocess.run((*command, "--connections", "1", "3"), cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in ended.stdout.splitlines()]
    rows = [row for row in rows if len(row) == 10 and row[0].isdecimal()]
    names = ["health", "add a message", "context", "search", "recall"]
    assert [(row[0], row[1]) for row in rows] == [(count, name) for count in "13" for name in names]
    assert all(float(row[9]) > 0 for row in rows)


class Server:
    """A server on a free port that notes what it is asked, and answers with `status` and five bytes."""

    def __init__(self, status=200):
        self._status = status
        self.asked = []
        self._talks = []
        self.most = self._now = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await asyncio.gather(*self._talks)

    async def _talk(self, reader, writer):
        self._talks.append(asyncio.current_task())
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(re.search(rb"Content-Length: (\d+)", head)[1])
                self.asked.append((head.split(maxsplit=2)[1].decode(), await reader.readexactly(length)))
                writer.write(b"HTTP/1.1 %d ?\r\ncontent-length: 5\r\n\r\n12345" % self._status)
        except asyncio.IncompleteReadError:
            writer.close()
        self._now -= 1


async def test_the_bare_route_gets_the_same_body_and_sends_as_many_bytes():
    async with Server() as served, Server() as bare:
        for route in routes("what they said"):
            turn, length = await ask((0, served.address), route, 3, 9, iter(range(9)))
            assert (len(turn.took), length) == (9, 5)
            await ask((0, bare.address), route, 3, 9, iter(range(9)), length)
    assert [body for _, body in served.asked] == [body for _, body in bare.asked]
    assert {path for path, _ in bare.asked} == {"/bare?length=5"}
    assert served.most == 3


async def test_messages_have_ids_of_their_own():
    async with Server() as served:
        route = next(one for one in routes("x") if one.path == "/messages")
        await ask((0, served.address), route, 4, 20, iter(range(100)))
    assert len({body for _, body in served.asked}) == 20


@pytest.mark.parametrize("status", [404, 503])
async def test_a_request_that_fails_stops_the_bench(status):
    async with Server(status) as served:
        with pytest.raises(Failed, match=str(status)):
            await ask((0, served.address), Route("health", "GET", "/health/live"), 1, 1, iter([0]))


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_processor_time_is_read():
    assert processor_ms(2**30) is None
    with subprocess.Popen([sys.executable, "-c", "sum(range(10**7)); input()"], stdin=subprocess.PIPE) as process:
        while not processor_ms(process.pid):
            pass
        process.kill()
