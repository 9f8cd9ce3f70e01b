"""A server that speaks just enough of Redis' protocol to break it where a test wants."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

Command = list[bytes]
Reply = bytes | None


class ScriptedRedis:
    """Greets as Redis does; `reply` gives the bytes for every other command, None to close the connection."""

    def __init__(self, reply: Callable[[Command], Awaitable[Reply]]) -> None:
        self._reply = reply
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"redis://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while (answer := await self._answer(await _command(reader))) is not None:
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, command: Command) -> Reply:
        return b"+OK\r\n" if command[0] == b"CLIENT" else await self._reply(command)


async def _command(reader: asyncio.StreamReader) -> Command:
    return [await _word(reader) for _ in range(int((await reader.readuntil(b"\r\n"))[1:]))]


async def _word(reader: asyncio.StreamReader) -> bytes:
    length = int((await reader.readuntil(b"\r\n"))[1:])
    return (await reader.readexactly(length + 2))[:-2]


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text)
