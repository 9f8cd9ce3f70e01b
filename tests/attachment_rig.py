"""Files behind a local address, and a store whose models read attachments."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import roomlore
from roomlore import Lore, Message, Settings
from roomlore.core.chat import _SILENCE, _STRIPES
from roomlore_testkit.loopback import LoopbackServer
from roomlore_testkit.model_server import ModelServer

PICTURE, VOICE = base64.b64decode(_STRIPES), _SILENCE
INLINE = f"data:image/png;base64,{_STRIPES}"


class FileServer(LoopbackServer):
    """Sends what stands under each path: bytes, a status, or a status with the address it leads to. Without a length,
    so that only what is sent tells how long it is."""

    def __init__(self, pages: Mapping[str, Any]) -> None:
        super().__init__()
        self.pages = dict(pages)
        self.asked: list[str] = []
        self.heads: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        path = head.split()[1]
        self.asked.append(path)
        self.heads.append(head)
        page = self.pages.get(path, 404)
        status, place = page if isinstance(page, tuple) else (page if isinstance(page, int) else 200, "")
        lines = [f"HTTP/1.1 {status} Sent", "Connection: close", *([f"Location: {place}"] if place else []), "", ""]
        writer.write("\r\n".join(lines).encode() + (page if isinstance(page, bytes) else b""))
        await writer.drain()
        return False


def settings(base_url: str, **more: Any) -> Settings:
    """Both models at the server of this address."""
    own = {name: {"internal": True, "providers": [{"name": "here", "model_id": name}]} for name in ("eyes", "ears")}
    given = {"caption_model": "eyes", "transcript_model": "ears", "attachment_private": True, "extract_every": 0}
    return Settings(**({"models": own, "providers": {"here": {"base_url": base_url}}} | given | more))


@asynccontextmanager
async def reading(url: str, script: Any = (), **more: Any) -> AsyncIterator[tuple[Lore, ModelServer]]:
    """A store that works when it is told to, and the server of its models."""
    async with (
        ModelServer(script) as server,
        roomlore.open(url, settings=settings(server.url, **more), background=False) as lore,
    ):
        yield lore, server


def held(name: str, *attachments: Mapping[str, Any], text: str = "look", **more: Any) -> Message:
    """A message with attachments, by default one picture in its own address."""
    listed = list(attachments or [{"type": "picture", "url": INLINE}])
    given = {"room_id": "team", "sender_id": "ann", "text": text, "metadata": {"attachments": listed}}
    return Message(id=name, **(given | more))


async def descriptions(lore: Lore, room_id: str = "team") -> dict[str, list[str | None]]:
    """What the attachments of each message are described as, None where it was not tried."""
    return {
        message.id: [one.get("description") for one in message.metadata.get("attachments", ())]
        for message in await lore.messages.page(room_id)
    }
