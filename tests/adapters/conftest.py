"""A scripted server of models, and a client that asks it."""

from collections.abc import AsyncIterator

import pytest

from roomlore.adapters.chat import open_chat
from roomlore.ports.language import ChatClient
from roomlore_testkit import FrozenClock
from roomlore_testkit.model_server import ModelServer


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def client() -> AsyncIterator[ChatClient]:
    client = open_chat(clock=FrozenClock())
    yield client
    await client.close()
