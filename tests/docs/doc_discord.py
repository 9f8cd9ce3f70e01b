"""A stand-in of Discord, as much as a bot made with discord.py needs: its gateway and its HTTP API."""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web
from doc_stand_in import StandIn

BOT, GUILD, CHANNEL = "900", "400", "500"
ANN = {"id": "1", "username": "ann", "global_name": "Ann", "discriminator": "0", "avatar": None}
LI = {"id": "2", "username": "xiaoli", "global_name": "小李", "discriminator": "0", "avatar": None}
SELF = {"id": BOT, "username": "Lore", "discriminator": "0000", "avatar": None, "bot": True}
MESSAGE_CONTENT = 1 << 15
_HELLO, _HEARTBEAT, _ACKNOWLEDGED, _IDENTIFY, _DISPATCH = 10, 1, 11, 2, 0


class Discord(StandIn):
    """`identified`: what the bot said of itself. `unanswerable`: whoever replies to one of these is cut off."""

    def __init__(self, happens: Callable[["Discord"], Any]) -> None:
        super().__init__()
        self._script = happens
        self.identified: dict[str, Any] = {}
        self.unanswerable: set[str] = set()
        self._changed = asyncio.Condition()
        self._ids = itertools.count(1000)
        self._sequence = itertools.count(1)
        self._socket = web.WebSocketResponse()
        add = self.app.router.add_route
        add("GET", "/gateway", self._gateway)
        add("GET", "/api/v10/users/@me", self._me)
        add("GET", "/api/v10/oauth2/applications/@me", self._application)
        add("POST", f"/api/v10/channels/{CHANNEL}/typing", self._typing)
        add("POST", f"/api/v10/channels/{CHANNEL}/messages", self._send)
        add("PATCH", f"/api/v10/channels/{CHANNEL}/messages/{{id}}", self._edit)

    async def happens(self) -> Any:
        return await self._script(self)

    async def tell(self, event: str, **data: Any) -> None:
        """Tells the bot of an event."""
        await self._socket.send_json({"op": _DISPATCH, "t": event, "s": next(self._sequence), "d": data})

    async def until_said(self, text: str, to: str) -> dict[str, Any]:
        """The bot's message that answers `to`, once it has this text."""
        return await self._once(lambda said: said["content"] == text and _answers(said, to))

    async def until_answered(self, to: str) -> dict[str, Any]:
        return await self._once(lambda said: _answers(said, to))

    async def _once(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with self._changed:
            await self._changed.wait_for(lambda: any(map(wanted, self.said.values())))
            return next(filter(wanted, self.said.values()))

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        self._socket = web.WebSocketResponse()
        await self._socket.prepare(request)
        await self._socket.send_json({"op": _HELLO, "d": {"heartbeat_interval": 41250}})
        async for frame in self._socket:
            if frame.type is WSMsgType.TEXT:
                await self._hear(json.loads(frame.data))
        return self._socket

    async def _hear(self, frame: dict[str, Any]) -> None:
        if frame["op"] == _HEARTBEAT:
            await self._socket.send_json({"op": _ACKNOWLEDGED})
        elif frame["op"] == _IDENTIFY:
            self.identified = frame["d"]
            await self.tell("READY", v=10, user=SELF, guilds=[{"id": GUILD, "unavailable": True}], session_id="s",
                            resume_gateway_url=self.url, application={"id": "901", "flags": 0})  # fmt: skip
            await self.tell("GUILD_CREATE", **_guild())
            self.begin()

    async def _me(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bot ..."
        return _json(SELF)

    async def _application(self, _: web.Request) -> web.Response:
        return _json(
            {"id": "901", "name": "Lore", "icon": None, "description": "", "bot_public": True, "flags": 0,
             "bot_require_code_grant": False, "verify_key": "", "owner": ANN, "team": None, "summary": ""}
        )  # fmt: skip

    async def _typing(self, _: web.Request) -> web.Response:
        return web.Response(status=204)

    async def _send(self, request: web.Request) -> web.Response:
        body = await request.json()
        if str(body["message_reference"]["message_id"]) in self.unanswerable:
            request.transport.abort()
            return web.Response()
        reference = {"type": 0, **{name: str(value) for name, value in body["message_reference"].items()}}
        sent = message(str(next(self._ids)), SELF, body["content"], type=19, message_reference=reference)
        assert body["allowed_mentions"]["parse"] == []
        await self.tell("MESSAGE_CREATE", **sent)
        return await self._now(sent)

    async def _edit(self, request: web.Request) -> web.Response:
        body = await request.json()
        before = self.said[request.match_info["id"]]
        after = {**before, "content": body["content"], "edited_timestamp": "2026-06-01T09:30:00+00:00"}
        await self.tell("MESSAGE_UPDATE", **after)
        return await self._now(after)

    async def _now(self, said: dict[str, Any]) -> web.Response:
        async with self._changed:
            self.said[said["id"]] = said
            self._changed.notify_all()
        return _json(said)


def _answers(said: dict[str, Any], to: str) -> bool:
    return said["message_reference"]["message_id"] == to


def _json(content: Any) -> web.Response:
    """Its content type has no charset: discord.py reads nothing else as JSON."""
    return web.Response(body=json.dumps(content).encode(), content_type="application/json")


def message(message_id: str, author: dict[str, Any], content: str, **more: Any) -> dict[str, Any]:
    """A message as Discord tells it, edited if it has `edited_timestamp`."""
    return {
        "id": message_id, "channel_id": CHANNEL, "guild_id": GUILD, "author": author, "content": content, "type": 0,
        "timestamp": f"2026-06-01T09:{int(message_id) % 60:02}:00.000000+00:00", "edited_timestamp": None, "tts": False,
        "mention_everyone": False, "mentions": [SELF] if f"<@{BOT}>" in content else [], "mention_roles": [],
        "attachments": [], "embeds": [], "pinned": False, "flags": 0, "components": [], **more,
    }  # fmt: skip


def reply(message_id: str, author: dict[str, Any], content: str, to: dict[str, Any]) -> dict[str, Any]:
    """A message that replies to another one."""
    reference = {"type": 0, "message_id": to["id"], "channel_id": CHANNEL, "guild_id": GUILD}
    return message(message_id, author, content, type=19, message_reference=reference, referenced_message=to)


def _guild() -> dict[str, Any]:
    everyone = {"id": GUILD, "name": "@everyone", "permissions": "0", "position": 0, "color": 0, "hoist": False,
                "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
                "managed": False, "mentionable": False, "flags": 0}  # fmt: skip
    channel = {"id": CHANNEL, "type": 0, "name": "tea", "position": 0, "permission_overwrites": [], "nsfw": False}
    return {
        "id": GUILD, "name": "Tea club", "unavailable": False, "owner_id": "1", "member_count": 3, "large": False,
        "roles": [everyone], "channels": [channel], "threads": [], "emojis": [], "stickers": [], "features": [],
        "members": [{"user": SELF, "roles": [], "joined_at": "2026-01-01T00:00:00+00:00", "flags": 0}],
        "presences": [], "voice_states": [], "stage_instances": [], "guild_scheduled_events": [],
        "soundboard_sounds": [], "verification_level": 0, "default_message_notifications": 0, "premium_tier": 0,
        "explicit_content_filter": 0, "mfa_level": 0, "nsfw_level": 0, "system_channel_flags": 0,
        "preferred_locale": "en-US", "afk_timeout": 300,
    }  # fmt: skip
