"""Real MCP clients of the official SDK: of a process on its standard streams, and of a server on a port."""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

import roomlore
from forked_process import ForkedProcess
from roomlore_server.http.server import bind

PROGRAM = [sys.executable, "-c", "from roomlore.surfaces.cli import main; main()"]
DATABASE = "chat.db"
ANNA, TEAM = "user:anna", "group:tea"
BEGAN = datetime(2026, 3, 1, 9, tzinfo=UTC)
CHAT = (
    ("m1", "ann", "Where does the team dinner take place on Friday?", None),
    ("m2", "bo", "The printer is out of paper again.", None),
    ("m3", "cai", "周五聚餐在湖边的餐厅。", "m1"),
    ("m4", "ann", "好的，几点？ And who books the table?", "m3"),
)


def messages(room: str = "tea") -> list[roomlore.Message]:
    return [
        roomlore.Message(
            id=name,
            room_id=room,
            sender_id=sender,
            sender_name=sender.title(),
            text=text,
            reply_to=answers,
            sent_at=BEGAN + timedelta(minutes=place),
        )
        for place, (name, sender, text, answers) in enumerate(CHAT)
    ]


def fill(database: str = DATABASE) -> None:
    with roomlore.open_sync(database) as lore:
        lore.messages.add(messages())


def command(*arguments: str, database: str = DATABASE) -> list[str]:
    return [*PROGRAM, "--db", database, "mcp", *arguments]


class _Forked(anyio.abc.Process):
    """A process that is forked, as the SDK knows one that it started."""

    def __init__(self, process: ForkedProcess) -> None:
        self._process = process
        self._ends = _Written(process.stdin), _Read(process.stdout)

    stdin = property(lambda self: self._ends[0])
    stdout = property(lambda self: self._ends[1])
    stderr = None
    pid = property(lambda self: self._process.pid)
    returncode = property(lambda self: self._process.returncode)

    async def wait(self) -> int:
        return await self._process.wait()

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    async def aclose(self) -> None:
        for end in self._ends:
            await end.aclose()


class _Written(anyio.abc.ByteSendStream):
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, item: bytes) -> None:
        self._writer.write(item)
        await self._writer.drain()

    async def aclose(self) -> None:
        self._writer.close()


class _Read(anyio.abc.ByteReceiveStream):
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        if read := await self._reader.read(max_bytes):
            return read
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        self._reader._transport.close()


async def _fork(command: list[str], *, env: dict[str, str], stderr: TextIO, **_: object) -> _Forked:
    words = command[len(PROGRAM) :]
    program = Path(__file__).with_name("session_leader.py")
    return _Forked(await ForkedProcess.start(program, *words, environment=env, error=stderr.fileno()))


@asynccontextmanager
async def on_standard_streams(
    *arguments: str, mode: str = "auto", env: dict[str, str] | None = None, forked: bool = True
):
    """A client of `roomlore mcp`; its log is in mcp.log. `forked`: the process is, rather than started anew, which
    takes a second."""
    program, *rest = command(*arguments)
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    set_for_it = {"MEMORY_LOG_FORMAT": "json", **path, **(env or {})}
    started = StdioServerParameters(command=program, args=rest, env=set_for_it)
    with Path("mcp.log").open("a+", encoding="utf-8") as log:  # noqa: ASYNC230 - a process writes it, not this loop
        try:
            with pytest.MonkeyPatch.context() as patch:
                if forked:
                    patch.setattr(anyio, "open_process", _fork)
                async with Client(stdio_client(started, errlog=log), mode=mode) as client:
                    yield client
        except BaseException as error:
            log.seek(0)
            error.add_note(f"Its log:\n{log.read()}")
            raise


@asynccontextmanager
async def on_a_port(app, door=None):
    """The application on a port of this machine, by its address. `door`: a socket that is already bound."""
    door = door or bind("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    serving = asyncio.create_task(server.serve([door]))
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def over_http(url: str, *, key: str | None = None, mode: str = "auto", path: str = "/mcp"):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as web,
        Client(streamable_http_client(f"{url}{path}", http_client=web), mode=mode) as client,
    ):
        yield client


async def ask(client: Client, tool: str, **arguments) -> dict:
    """Return the answer of a tool; check that its text says the same as its data."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    assert [json.loads(part.text) for part in answer.content] == [answer.structured_content]
    return answer.structured_content


async def refusal(client: Client, tool: str, **arguments) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert answer.structured_content is None
    return answer.content[0].text


def lines_of_log() -> list[dict]:
    return [json.loads(line) for line in Path("mcp.log").read_text(encoding="utf-8").splitlines()]
