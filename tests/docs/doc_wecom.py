"""A stand-in of WeCom (企业微信), as much as an app needs that people write to: its callback and its API."""

import asyncio
import base64
import hashlib
import itertools
import os
import struct
from collections.abc import Callable
from typing import Any

from aiohttp import ClientConnectionError, ClientSession, web
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7
from doc_stand_in import StandIn

CORP, AGENT, ANN = "...", "1000002", "ann"
AES_KEY = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
_KEY = base64.b64decode(AES_KEY + "=")
_BETWEEN_SECONDS = 0.05


class WeCom(StandIn):
    """`webhook`: where the bot listens."""

    def __init__(self, happens: Callable[["WeCom"], Any], webhook: str) -> None:
        super().__init__()
        self._script, self._webhook = happens, webhook
        self._changed = asyncio.Condition()
        self._ids = itertools.count(1)
        self.app.router.add_get("/cgi-bin/gettoken", self._token)
        self.app.router.add_post("/cgi-bin/message/send", self._take)

    async def _over(self, request: web.Request) -> web.Response:
        self.begin()  # the bot says nothing of itself when it starts
        return await super()._over(request)

    async def happens(self) -> Any:
        async with ClientSession() as self._client:
            while True:  # until the bot listens
                try:
                    await self._client.get(self._webhook)
                    break
                except ClientConnectionError:
                    await asyncio.sleep(_BETWEEN_SECONDS)
            return await self._script(self)

    async def verify(self, *, signed: bool = True) -> tuple[int, str]:
        sealed = _sealed("echo-7")
        async with self._client.get(self._webhook, params=_signed(sealed, signed) | {"echostr": sealed}) as answer:
            return answer.status, await answer.text()

    async def tell(self, number: int, who: str, text: str, *, signed: bool = True) -> int:
        fields = {"ToUserName": CORP, "FromUserName": who, "CreateTime": str(1780300000 + number), "MsgType": "text",
                  "Content": text, "MsgId": str(number), "AgentID": AGENT}  # fmt: skip
        sealed = _sealed(
            f"<xml>{''.join(f'<{name}><![CDATA[{value}]]></{name}>' for name, value in fields.items())}</xml>"
        )
        body = f"<xml><ToUserName><![CDATA[{CORP}]]></ToUserName><Encrypt><![CDATA[{sealed}]]></Encrypt></xml>"
        async with self._client.post(self._webhook, params=_signed(sealed, signed), data=body) as answer:
            return answer.status

    async def until_said(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.said) >= count)

    async def _token(self, request: web.Request) -> web.Response:
        assert dict(request.query) == {"corpid": "...", "corpsecret": "..."}
        return web.json_response({"errcode": 0, "errmsg": "ok", "access_token": "t-1", "expires_in": 7200})

    async def _take(self, request: web.Request) -> web.Response:
        if request.query.get("access_token") != "t-1":
            return web.json_response({"errcode": 40014, "errmsg": "invalid access_token"})
        async with self._changed:
            self.said[str(next(self._ids))] = await request.json()
            self._changed.notify_all()
        return web.json_response({"errcode": 0, "errmsg": "ok"})


def _signed(sealed: str, truly: bool) -> dict[str, str]:
    made = hashlib.sha1("".join(sorted(["...", "1780300000", "nonce", sealed])).encode()).hexdigest()
    return {"msg_signature": made if truly else "0" * 40, "timestamp": "1780300000", "nonce": "nonce"}


def _sealed(text: str) -> str:
    content = os.urandom(16) + struct.pack(">I", len(text.encode())) + text.encode() + CORP.encode()
    padder, sealing = PKCS7(256).padder(), Cipher(algorithms.AES(_KEY), modes.CBC(_KEY[:16])).encryptor()
    return base64.b64encode(sealing.update(padder.update(content) + padder.finalize()) + sealing.finalize()).decode()
