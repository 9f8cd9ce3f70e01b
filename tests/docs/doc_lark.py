"""A stand-in of the open platform of Lark and Feishu, as much as a bot needs, that tells its events to a webhook."""

import asyncio
import base64
import hashlib
import itertools
import json
import os
import time
from collections.abc import Callable
from typing import Any

from aiohttp import ClientConnectionError, ClientSession, web
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7
from doc_stand_in import StandIn
from yarl import URL

BOT, CHAT, SECRET = "ou_bot", "oc_tea", "..."
"""`SECRET`: what the page puts for the app's secret, its token and its key."""
PEOPLE = {"ou_li": "李雷"}
"""Whom the bot may know by name."""
LATE, STRANGE = "ou_late", "ou_strange"
_BETWEEN_SECONDS = 0.05
_ENDING_SECONDS = 1.0
"""A bot that waits for nothing has ended by then."""


class Lark(StandIn):
    """`webhook`: where the bot listens. `tokens`: how many were handed out. `replied`: to which messages, as often as
    the bot sent it. Of the first stranger a gateway's page is all that comes, and of the late one an answer only once
    the bot ends. Of the strange one `null` is all that comes, and so it is where the bot replies to one of
    `unanswerable`."""

    def __init__(self, happens: Callable[["Lark"], Any], webhook: str) -> None:
        super().__init__()
        self._script, self._webhook = happens, webhook
        self.tokens = 0
        self.replied: list[str] = []
        self.unanswerable: set[str] = set()
        self._gateway_is_down = True
        self._by_uuid: dict[str, dict[str, Any]] = {}
        self._changed = asyncio.Condition()
        self._ids = itertools.count(1)
        self._caught: tuple[bytes, dict[str, str]] = (b"", {})
        add = self.app.router.add_route
        add("POST", "/open-apis/auth/v3/tenant_access_token/internal", self._token)
        add("GET", "/open-apis/bot/v3/info", self._info)
        add("GET", "/open-apis/im/v1/messages/{id}", self._message)
        add("GET", "/open-apis/contact/v3/users/{id}", self._person)
        add("POST", "/open-apis/im/v1/messages/{id}/reply", self._reply)

    async def happens(self) -> Any:
        async with ClientSession() as self._client:
            await self._until_there()
            return await self._script(self)

    async def tell(self, kind: str, *, signed: bool = True, age: float = 0, **event: Any) -> int:
        """Tells the webhook of an event, encrypted and signed as the platform does; the status of its answer."""
        header = {"event_id": f"e{next(self._ids)}", "event_type": kind, "token": SECRET, "app_id": "cli_..."}
        status, _ = await self.post({"schema": "2.0", "header": header, "event": event}, signed=signed, age=age)
        return status

    async def tell_plainly(self, kind: str, *, token: str = SECRET, **event: Any) -> int:
        """Tell the webhook of an event as an app without an encrypt key gets it; return the status of its answer."""
        header = {"event_id": f"e{next(self._ids)}", "event_type": kind, "token": token, "app_id": "cli_..."}
        status, _ = await self._send(json.dumps({"schema": "2.0", "header": header, "event": event}).encode(), {})
        return status

    async def post(self, content: dict[str, Any], *, signed: bool = True, age: float = 0) -> tuple[int, dict[str, Any]]:
        """`age`: seconds since it was signed."""
        raw, stamp = json.dumps({"encrypt": _encrypted(content)}).encode(), str(int(time.time() - age))
        made = hashlib.sha256(f"{stamp}nonce{SECRET}".encode() + raw).hexdigest()
        headers = {
            "X-Lark-Request-Timestamp": stamp,
            "X-Lark-Request-Nonce": "nonce",
            "X-Lark-Signature": made if signed else "0" * 64,
        }
        self._caught = raw, headers
        return await self._send(raw, headers)

    async def replay(self) -> int:
        """Sends again what was sent last, byte for byte."""
        status, _ = await self._send(*self._caught)
        return status

    async def _send(self, raw: bytes, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        async with self._client.post(self._webhook, data=raw, headers=headers) as answer:
            return answer.status, await answer.json()

    async def until_answered(self, to: str) -> dict[str, Any]:
        async with self._changed:
            await self._changed.wait_for(lambda: any(said["parent_id"] == to for said in self.said.values()))
        return next(said for said in self.said.values() if said["parent_id"] == to)

    async def _until_gone(self) -> None:
        place = URL(self._webhook)
        while True:
            try:
                _, writing = await asyncio.open_connection(place.host, place.port)
            except ConnectionError:
                return
            writing.close()
            await asyncio.sleep(_BETWEEN_SECONDS)

    async def _until_there(self) -> None:
        """The webhook listens only after it has asked who it is."""
        while True:
            try:
                await self._client.get(self._webhook)
            except ClientConnectionError:
                await asyncio.sleep(_BETWEEN_SECONDS)
            else:
                return

    async def _token(self, request: web.Request) -> web.Response:
        assert await request.json() == {"app_id": "cli_...", "app_secret": SECRET}
        self.tokens += 1
        return web.json_response({"code": 0, "msg": "ok", "tenant_access_token": "t-1", "expire": 7200})

    async def _info(self, request: web.Request) -> web.Response:
        self._check(request)
        self.begin()
        return web.json_response({"code": 0, "msg": "ok", "bot": {"open_id": BOT, "app_name": "茶"}})

    async def _person(self, request: web.Request) -> web.Response:
        self._check(request)
        name = PEOPLE.get(request.match_info["id"])
        if request.match_info["id"] == LATE:
            await self._until_gone()
            await asyncio.sleep(_ENDING_SECONDS)
        if request.match_info["id"] == STRANGE:
            return web.json_response(None)
        if name is None and self._gateway_is_down:
            self._gateway_is_down = False
            return web.Response(status=502, text="<html>Bad Gateway</html>", content_type="text/html")
        if name is None:
            return web.json_response({"code": 41050, "msg": "no user authority"}, status=400)
        return web.json_response({"code": 0, "msg": "success", "data": {"user": {"name": name}}})

    async def _message(self, request: web.Request) -> web.Response:
        self._check(request)
        found = self.said.get(request.match_info["id"])
        if found is None:
            return web.json_response({"code": 230002, "msg": "The message is not found"}, status=400)
        return web.json_response({"code": 0, "msg": "success", "data": {"items": [found]}})

    async def _reply(self, request: web.Request) -> web.Response:
        self._check(request)
        body, parent = await request.json(), request.match_info["id"]
        if parent in self.unanswerable:
            return web.json_response(None)
        made = {"message_id": f"om_bot{next(self._ids)}", "chat_id": CHAT, "parent_id": parent, "root_id": parent,
                "msg_type": body["msg_type"], "body": {"content": body["content"]},
                "sender": {"id": "cli_...", "id_type": "app_id", "sender_type": "app"}}  # fmt: skip
        self.replied.append(parent)
        async with self._changed:
            said = self._by_uuid.setdefault(body["uuid"], made)
            self.said[said["message_id"]] = said
            self._changed.notify_all()
        return web.json_response({"code": 0, "msg": "success", "data": said})

    def _check(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != "Bearer t-1":
            raise web.HTTPUnauthorized(text='{"code": 99991663, "msg": "Invalid access token"}')


def message(message_id: str, sender: str, content: dict[str, Any], kind: str = "text", **more: Any) -> dict[str, Any]:
    """The `event` of a message."""
    said = {
        "message_id": message_id,
        "create_time": f"17803044{int(message_id[-1]):02}000",
        "chat_id": CHAT,
        "chat_type": "group",
        "message_type": kind,
        "content": json.dumps(content, ensure_ascii=False),
        **more,
    }
    return {"sender": {"sender_id": {"open_id": sender}, "sender_type": "user", "tenant_key": "t"}, "message": said}


def mention(place: int, open_id: str, name: str) -> dict[str, Any]:
    return {"key": f"@_user_{place}", "id": {"open_id": open_id}, "name": name, "tenant_key": "t"}


def _encrypted(content: dict[str, Any]) -> str:
    start, key = os.urandom(16), hashlib.sha256(SECRET.encode()).digest()
    sealing, padding = Cipher(algorithms.AES(key), modes.CBC(start)).encryptor(), PKCS7(128).padder()
    padded = padding.update(json.dumps(content).encode()) + padding.finalize()
    return base64.b64encode(start + sealing.update(padded) + sealing.finalize()).decode()
