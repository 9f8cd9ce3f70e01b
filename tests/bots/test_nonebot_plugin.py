"""The plugin in a real NoneBot2 with its OneBot v11 adapter, connected to a stand-in of QQ on a loopback socket."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web

import roomlore
from forked_process import ForkedProcess

BOT, ANN, BO, LI = 10000, 1001, 1002, 1003
NAMES = {ANN: "小明", BO: "小明", LI: "Li Na", BOT: "bot"}
SECONDS = 60
CLOCK = count(1_700_000_000)


class Qq:
    """OneBot's side of the connection. `sent`: what the bot sent, as (room, text)."""

    def __init__(self, self_id: int = BOT) -> None:
        self.self_id = self_id
        self.sent: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.members: dict[int, list[int]] = {}
        self._connected: asyncio.Future[web.WebSocketResponse] = asyncio.get_running_loop().create_future()
        self._ids, self._asked = count(self_id * 100), asyncio.Event()

    async def connect(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        lifecycle = {"post_type": "meta_event", "meta_event_type": "lifecycle", "sub_type": "connect"}
        await socket.send_json({"time": 1, "self_id": self.self_id, **lifecycle})
        self._connected.set_result(socket)
        async for frame in socket:
            if frame.type is WSMsgType.TEXT:
                call = frame.json()
                data = self._answer(call["action"], call["params"])
                await socket.send_json({"status": "ok", "retcode": 0, "data": data, "echo": call["echo"]})
        return socket

    def _answer(self, action: str, params: dict[str, Any]) -> Any:
        if action == "get_group_member_list":
            self._asked.set()
            return [{"user_id": user} for user in [self.self_id, *self.members.get(params["group_id"], [])]]
        if action == "get_msg":
            return {"message_id": params["message_id"], "time": 1, "message_type": "group", "real_id": 1,
                    "sender": {"user_id": BO}, "message": []}  # fmt: skip
        assert action == "send_msg", action
        room = str(params.get("group_id") or f"private:{params['user_id']}")
        text = "".join(one["data"]["text"] for one in params["message"] if one["type"] == "text")
        self.sent.put_nowait((room, text))
        return {"message_id": next(self._ids)}

    async def event(self, **values: Any) -> None:
        socket = await asyncio.wait_for(asyncio.shield(self._connected), SECONDS)
        await socket.send_json({"time": next(CLOCK), "self_id": self.self_id, **values})

    async def says(self, user: int, text: str, *, group: int | None = 7, to_bot: bool = False, **more: Any) -> int:
        """A person says something. Returns the message's id."""
        number = more.pop("message_id", None) or next(self._ids)
        mention = [{"type": "at", "data": {"qq": str(self.self_id)}}] if to_bot and group else []
        quote = [{"type": "reply", "data": {"id": str(more.pop("quotes"))}}] if "quotes" in more else []
        message = [*quote, *mention, {"type": "text", "data": {"text": text}}]
        raw = "".join(f"[CQ:reply,id={one['data']['id']}]" for one in quote) + text
        where = {"message_type": "group", "group_id": group, "sub_type": "normal", "anonymous": None}
        alone = {"message_type": "private", "sub_type": "friend"}
        sender = {"user_id": user, "nickname": "nick", **({"card": NAMES[user]} if group else {})}
        await self.event(
            post_type="message", user_id=user, message_id=number, message=message, raw_message=raw, font=0,
            sender=sender, **(where if group else alone), **more,
        )  # fmt: skip
        return number

    async def answer_to(self, user: int, text: str, *, group: int | None = 7) -> str:
        """Return what the bot answers when a person asks it."""
        await self.says(user, text, group=group, to_bot=True)
        room, shown = await asyncio.wait_for(self.sent.get(), SECONDS)
        assert room == (str(group) if group else f"private:{user}")
        return shown

    async def until_members_were_asked(self) -> None:
        await asyncio.wait_for(self._asked.wait(), SECONDS)


@asynccontextmanager
async def bot(database: str, others: Qq, *, waits_seconds: float = 30) -> AsyncIterator[Qq]:
    """A NoneBot process with two accounts. Yields that of `BOT`; `others` is the other."""
    qq, app = Qq(), web.Application()
    app.router.add_get("/one", qq.connect)
    app.router.add_get("/other", others.connect)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"ws://127.0.0.1:{runner.addresses[0][1]}"
    program = Path(__file__).with_name("nonebot_bot.py")
    process = await ForkedProcess.start(program, database, str(waits_seconds), f"{url}/one", f"{url}/other")
    try:
        yield qq
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), SECONDS)
        await runner.cleanup()


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'chat.db'}"


async def test_a_bot_with_groups_and_private_chats(database):
    other = Qq(self_id=10001)
    async with bot(database, other) as qq:
        qq.members = {7: [ANN, BO, LI], 8: [ANN]}
        for number in range(1, 31):
            await qq.says(ANN, f"第{number}句", message_id=100 + number)
        said_at = next(CLOCK)
        first = await qq.says(BO, "周六爬山，早上八点南门集合", message_id=200, time=said_at)
        await qq.says(ANN, "好的，我带水", quotes=first, message_id=201, time=said_at)
        await qq.says(LI, "gone in a moment", message_id=202)
        recall = {"post_type": "notice", "notice_type": "group_recall", "group_id": 7, "message_id": 202}
        await qq.event(user_id=LI, operator_id=LI, **recall)
        shown = await qq.answer_to(LI, "周六爬山几点集合？")
        assert "本条消息的发言人：Li Na（user:1003）" in shown
        assert "早上八点南门集合" in shown
        assert "gone" not in shown

        # The other account hears the same in the group, with ids of its own.
        await other.says(BO, "周六爬山，早上八点南门集合", message_id=300, time=said_at)
        await other.says(ANN, "好的，我带水", quotes=300, message_id=303, time=said_at)
        await other.says(BOT, shown, message_id=302)
        await other.says(LI, "算我一个", message_id=301, quotes=300)
        assert "早上八点南门集合" in await other.answer_to(LI, "几点集合？")

        # What is said alone stays there, also towards the same person in a group.
        await qq.answer_to(ANN, "我的护照号是 E7319，帮我记一下", group=None)
        assert "E7319" in await qq.answer_to(ANN, "我的护照号是多少？", group=None)
        assert "E7319" not in await qq.answer_to(ANN, "我的护照号是多少？")
        assert "E7319" not in await qq.answer_to(BO, "小明的护照号是多少？", group=None)

        assert await qq.answer_to(ANN, "这里不记录", group=99) == "(nothing)"
        await qq.says(ANN, "hello", group=8)
        joined = {"post_type": "notice", "notice_type": "group_increase", "sub_type": "approve", "group_id": 7}
        await qq.event(user_id=1004, operator_id=ANN, **joined)
        await qq.until_members_were_asked()
        await qq.answer_to(ANN, "最后一句", group=None)

    async with roomlore.open(database, background=False) as lore:
        stored = await lore.messages.page("7")
        assert [one.text for one in stored[:30]] == [f"第{number}句" for number in range(1, 31)]
        by_id = {one.id: one for one in stored}
        assert (by_id["200"].sender_id, by_id["200"].sender_name) == (str(BO), "小明")
        assert (by_id["201"].sender_id, by_id["201"].reply_to) == (str(ANN), "200")
        assert not {"202", "300", "302", "303"} & by_id.keys()
        assert by_id["301"].reply_to == "200"
        answers = [one for one in stored if one.role is roomlore.Role.ASSISTANT]
        assert [(one.sender_id, by_id[one.reply_to].text) for one in answers] == [
            (str(BOT), "@10000 周六爬山几点集合？"),
            ("10001", "@10001 几点集合？"),
            (str(BOT), "@10000 我的护照号是多少？"),
        ]
        assert {room.room_id: room.kind for room in await lore.rooms.page()} == {
            "7": "private", "8": "private", f"private:{ANN}": "direct", f"private:{BO}": "direct",
        }  # fmt: skip
        people = (await lore.rooms.people("7")).people
        assert set(people) == {str(one) for one in (ANN, BO, LI, 1004)}


async def test_a_store_that_is_down_delays_an_answer_and_loses_nothing(database, tmp_path):
    async with bot(database, Qq(self_id=10001), waits_seconds=3) as qq:
        await qq.says(ANN, "周六爬山，早上八点南门集合", message_id=200)
        assert "南门集合" in await qq.answer_to(ANN, "几点集合？", group=7)
        locked = sqlite3.connect(tmp_path / "chat.db", isolation_level=None)
        locked.execute("BEGIN IMMEDIATE")
        await qq.says(BO, "改成九点", message_id=201)
        asked_at = asyncio.get_running_loop().time()
        assert await qq.answer_to(LI, "改到几点？") == "(nothing)"
        assert asyncio.get_running_loop().time() - asked_at < 25
        locked.execute("ROLLBACK")
        locked.close()
        answers = [await qq.answer_to(ANN, "改到几点集合？") for _ in range(8)]
        assert "改成九点" in answers[-1]
    async with roomlore.open(database, background=False) as lore:
        texts = [one.text for one in await lore.messages.page("7") if one.role is roomlore.Role.USER]
        assert texts[:4] == ["周六爬山，早上八点南门集合", "@10000 几点集合？", "改成九点", "@10000 改到几点？"]
