"""A stand-in of Telegram's Bot API, as much as a bot needs that asks for updates."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Any

from aiohttp import web
from doc_stand_in import StandIn

_WAIT_SECONDS = 0.2
BOT = {"id": 900, "is_bot": True, "first_name": "Lore", "username": "lore_bot"}
ANN, LI = ({"id": number, "is_bot": False, "first_name": name} for number, name in ((1, "Ann"), (2, "小李")))
GROUP = {"id": -1001234, "type": "supergroup", "title": "茶会"}


def message(number: int, who: dict[str, Any], text: str, chat: dict[str, Any] = GROUP, **more: Any) -> dict[str, Any]:
    return {"message_id": number, "from": who, "chat": chat, "date": 1780300000 + number, "text": text, **more}


class Telegram(StandIn):
    """Gives each update until the bot asks for the one after it. `said`: the bot's messages by id."""

    def __init__(self, happens: Callable[["Telegram"], Any]) -> None:
        super().__init__()
        self._script = happens
        self._updates: list[dict[str, Any]] = []
        self._numbers, self._ids = itertools.count(1), itertools.count(1000)
        self._changed = asyncio.Condition()
        self.app.router.add_post("/bot.../{method}", self._call)

    async def happens(self) -> Any:
        return await self._script(self)

    async def tell(self, **update: Any) -> None:
        async with self._changed:
            self._updates.append({"update_id": next(self._numbers), **update})
            self._changed.notify_all()

    async def until_answered(self, to: int) -> dict[str, Any]:
        """Return the bot's message that answers `to`, once it has been asked for the next update."""
        async with self._changed:
            await self._changed.wait_for(lambda: any(_answers(said, to) for said in self.said.values()))
            await self._changed.wait_for(lambda: not self._updates)
            return next(said for said in self.said.values() if _answers(said, to))

    async def _call(self, request: web.Request) -> web.Response:
        method, asked = request.match_info["method"], await request.json()
        answers = {"getMe": self._me, "getUpdates": self._wait, "sendMessage": self._send}
        return web.json_response({"ok": True, "result": await answers[method](asked)})

    async def _me(self, _: dict[str, Any]) -> dict[str, Any]:
        self.begin()
        return BOT

    async def _wait(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        async with self._changed:
            self._updates = [one for one in self._updates if one["update_id"] >= asked["offset"]]
            self._changed.notify_all()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_SECONDS):
                    await self._changed.wait_for(lambda: self._updates)
            return list(self._updates)

    async def _send(self, asked: dict[str, Any]) -> dict[str, Any]:
        async with self._changed:
            number = next(self._ids)
            self.said[str(number)] = {**asked, "message_id": number}
            self._changed.notify_all()
        return message(number, BOT, asked["text"])


def _answers(said: dict[str, Any], to: int) -> bool:
    return said["reply_parameters"] == {"message_id": to}
