"""A stand-in of Slack, as much as a bot in Socket Mode needs: its Web API and its socket."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web
from doc_stand_in import StandIn

BOT, ANN, LI, CHANNEL = "U900", "U1", "U2", "C500"
NAMES = {ANN: "Ann", LI: "小李", BOT: "Lore"}


def said(number: int, who: str, text: str, channel: str = CHANNEL, **more: Any) -> dict[str, Any]:
    kind = "im" if channel.startswith("D") else "channel"
    return {
        "type": "message",
        "channel": channel,
        "channel_type": kind,
        "user": who,
        "text": text,
        "ts": ts(number),
        **more,
    }


def ts(number: int) -> str:
    return f"{1780300000 + number}.000100"


class Slack(StandIn):
    """Sends each event until it is acknowledged, and ends the first connection in between."""

    def __init__(self, happens: Callable[["Slack"], Any]) -> None:
        super().__init__()
        self._script = happens
        self._numbers = itertools.count(100)
        self._changed = asyncio.Condition()
        self._acknowledged: set[str] = set()
        self._socket: web.WebSocketResponse | None = None
        add = self.app.router.add_post
        add("/api/auth.test", self._me)
        add("/api/users.info", self._person)
        add("/api/apps.connections.open", self._open)
        add("/api/chat.postMessage", self._post)
        self.app.router.add_get("/socket", self._listen)

    async def happens(self) -> Any:
        return await self._script(self)

    async def tell(self, event: dict[str, Any]) -> None:
        envelope = f"e{next(self._numbers)}"
        told = {"type": "events_api", "envelope_id": envelope, "payload": {"event": event}}
        while envelope not in self._acknowledged:
            async with self._changed:
                await self._changed.wait_for(lambda: self._socket is not None)
                socket = self._socket
                assert socket is not None
                with contextlib.suppress(ConnectionError):
                    await socket.send_json(told)
                await self._changed.wait_for(
                    lambda: envelope in self._acknowledged or self._socket is not socket  # noqa: B023 - awaited here
                )

    async def disconnect(self) -> None:
        async with self._changed:
            socket, self._socket = self._socket, None
        assert socket is not None
        await socket.send_json({"type": "disconnect", "reason": "refresh_requested"})
        await socket.close()

    async def until_answered(self, thread: str | None = None, count: int = 1) -> dict[str, Any]:
        """Return the bot's last message of the thread, once it has said so many there."""

        def found() -> list[dict[str, Any]]:
            return [one for one in self.said.values() if one.get("thread_ts") == thread]

        async with self._changed:
            await self._changed.wait_for(lambda: len(found()) >= count)
            return found()[-1]

    async def _me(self, request: web.Request) -> web.Response:
        _check(request, "bot")
        return web.json_response({"ok": True, "user_id": BOT, "user": "lore"})

    async def _person(self, request: web.Request) -> web.Response:
        who = (await request.post())["user"]
        return web.json_response({"ok": True, "user": {"id": who, "real_name": NAMES[str(who)]}})

    async def _open(self, request: web.Request) -> web.Response:
        _check(request, "app")
        return web.json_response({"ok": True, "url": self.url.replace("http", "ws") + "/socket"})

    async def _post(self, request: web.Request) -> web.Response:
        _check(request, "bot")
        given = {name: str(value) for name, value in (await request.post()).items()}
        if given["channel"] not in (CHANNEL, "D1"):
            return web.json_response({"ok": False, "error": "channel_not_found"})
        number = ts(next(self._numbers))
        async with self._changed:
            self.said[number] = {**given, "ts": number}
            self._changed.notify_all()
        return web.json_response({"ok": True, "ts": number})

    async def _listen(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        async with self._changed:
            self._socket = socket
            self._changed.notify_all()
        self.begin()
        async for frame in socket:
            if frame.type is WSMsgType.TEXT:
                async with self._changed:
                    self._acknowledged.add(frame.json()["envelope_id"])
                    self._changed.notify_all()
        return socket


def _check(request: web.Request, kind: str) -> None:
    if request.headers["Authorization"] != f"Bearer {'xoxb-...' if kind == 'bot' else 'xapp-...'}":
        raise web.HTTPUnauthorized
