"""A loopback server that stops leaves no connection open, whenever a client comes."""

import asyncio
import gc
import socket

import pytest

from roomlore_testkit.loopback import LoopbackServer


class Silent(LoopbackServer):
    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readexactly(1)
        return True


@pytest.mark.parametrize("rounds", range(8))
async def test_a_client_that_comes_while_it_stops_is_cut_off(rounds):
    async with Silent() as server:
        with socket.create_connection(("127.0.0.1", server._port), timeout=5) as client:
            for _ in range(rounds):
                await asyncio.sleep(0)
            await server.stop()
            try:
                received = client.recv(1)
            except ConnectionResetError:
                received = b""
            assert received == b""
    gc.collect()
