"""The AstrBot plugin inside a real AstrBot, with a OneBot client on a loopback socket and a scripted model.

Not part of the suite, as AstrBot brings many packages. In an environment of its own:

    python -m venv .astrbot && .astrbot/bin/pip install astrbot 'mcp<2' -e . -e packages/roomlore-importers
    .astrbot/bin/python tests/bots/astrbot_walk.py
"""

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[2] / "plugins" / "astrbot_plugin_roomlore"
ROOT = Path(tempfile.mkdtemp(prefix="astrbot-walk-"))
os.environ["ASTRBOT_ROOT"] = str(ROOT)
os.chdir(ROOT)
sys.path.insert(0, str(ROOT))
BOT = 10000
MEMBERS = {880101: "小明", 880102: "Li Na", 880103: "老王", 880104: "小明", 880105: "阿芳"}  # two of one name
GROUPS = (7001, 7002)


def done(what: str) -> None:
    sys.stdout.write(f"{what}\n")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def configure(model_url: str, port: int) -> None:
    data = ROOT / "data"
    (data / "config").mkdir(parents=True)
    unneeded = shutil.ignore_patterns("requirements.txt", "__pycache__")
    shutil.copytree(PLUGIN, data / "plugins" / PLUGIN.name, ignore=unneeded)
    from astrbot.core import astrbot_config as config

    config["platform"] = [
        {
            "id": "qq",
            "type": "aiocqhttp",
            "enable": True,
            "ws_reverse_host": "127.0.0.1",
            "ws_reverse_port": port,
            "ws_reverse_token": "",
        }
    ]
    config["provider"] = [
        {
            "id": "scripted",
            "provider": "openai",
            "type": "openai_chat_completion",
            "provider_type": "chat_completion",
            "enable": True,
            "key": ["sk-none"],
            "api_base": model_url,
            "timeout": 20,
            "model": "scripted",
            "model_config": {"model": "scripted"},
            "custom_headers": {},
        }
    ]
    config["provider_settings"]["default_provider_id"] = "scripted"
    config["admins_id"] = ["880101"]
    config["platform_settings"]["rate_limit"]["count"] = 100_000
    config["dashboard"]["enable"] = False
    config.save_config()


class OneBot:
    """A OneBot client: sends events and answers the calls of AstrBot."""

    def __init__(self, socket) -> None:
        self.socket = socket
        self.sent: asyncio.Queue = asyncio.Queue()
        self.number = 0
        self.said: dict[int, dict] = {}
        self.reading = asyncio.create_task(self.read())

    async def read(self) -> None:
        async for text in self.socket:
            call = json.loads(text)
            answer = {"status": "ok", "retcode": 0, "data": self.answer(call), "echo": call.get("echo")}
            await self.socket.send(json.dumps(answer))

    def answer(self, call: dict) -> dict:
        given = call.get("params", {})
        if call["action"].startswith("send_"):
            self.number += 1
            self.sent.put_nowait((given.get("group_id") or given.get("user_id"), given["message"]))
            return {"message_id": self.number}
        if call["action"] == "get_group_member_info":
            return {"user_id": given["user_id"], "card": MEMBERS.get(given["user_id"], "机器人"), "nickname": "n"}
        if call["action"] == "get_msg":
            return self.said[int(given["message_id"])]
        return {}

    async def say(
        self, user: int, text: str, group: int | None = None, *, at: bool = False, reply: int | None = None
    ) -> int:
        self.number += 1
        parts = [{"type": "reply", "data": {"id": str(reply)}}] if reply else []
        parts += [{"type": "at", "data": {"qq": str(BOT)}}] if at else []
        parts.append({"type": "text", "data": {"text": text}})
        event = {
            "time": int(time.time()),
            "self_id": BOT,
            "post_type": "message",
            "message_type": "group" if group else "private",
            "sub_type": "normal" if group else "friend",
            "message_id": self.number,
            "user_id": user,
            "message": parts,
            "raw_message": text,
            "font": 0,
            "sender": {"user_id": user, "nickname": f"nick{user}", "card": MEMBERS[user] if group else ""},
        }
        if group:
            event["group_id"] = group
        self.said[self.number] = event
        await self.socket.send(json.dumps(event))
        return self.number

    async def recall(self, user: int, group: int, message: int) -> None:
        notice = {
            "time": int(time.time()), "self_id": BOT, "post_type": "notice", "notice_type": "group_recall",
            "group_id": group, "user_id": user, "operator_id": user, "message_id": message,
        }  # fmt: skip
        await self.socket.send(json.dumps(notice))

    async def next(self, seconds: float = 20) -> tuple[int, str]:
        place, message = await asyncio.wait_for(self.sent.get(), seconds)
        return place, "".join(p["data"].get("text", "") for p in message) if isinstance(message, list) else str(message)


def parts_of(asked) -> list[str]:
    content = asked.body["messages"][-1]["content"]
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def block_of(asked) -> str:
    return next((part for part in parts_of(asked) if part.startswith("<roomlore>")), "")


def common_prefix(one: list[dict], other: list[dict]) -> int:
    """Return how many of the messages of the first request begin the second one unchanged."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if json.dumps(a, ensure_ascii=False) != json.dumps(b, ensure_ascii=False):
            break
        count += 1
    return count


async def walk() -> None:
    import websockets

    from roomlore_testkit.model_server import ModelServer, Says

    async with ModelServer(default=Says(text="好的。")) as server:
        port = free_port()
        configure(server.url, port)
        from astrbot.core import LogBroker, db_helper
        from astrbot.core.core_lifecycle import AstrBotCoreLifecycle

        core = AstrBotCoreLifecycle(LogBroker(), db_helper)
        await core.initialize()
        running = asyncio.create_task(core.start())
        for _ in range(100):
            try:
                headers = {"X-Self-ID": str(BOT), "X-Client-Role": "Universal"}
                client = await websockets.connect(f"ws://127.0.0.1:{port}/ws/", additional_headers=headers)
                break
            except OSError:
                await asyncio.sleep(0.2)
        bot = OneBot(client)
        star = next(one for one in core.plugin_manager.context.get_all_stars() if one.name == PLUGIN.name)
        memory = star.star_cls.memory
        done(f"AstrBot runs with {star.name} {star.version}")
        await script(bot, server, memory, core)
        await client.close()
        running.cancel()
        await core.stop()


async def script(bot: OneBot, server, memory, core) -> None:
    from datetime import UTC, datetime

    import roomlore
    from roomlore_testkit.model_server import Says

    lore = memory._lore

    async def heard() -> None:
        await asyncio.sleep(0.3)
        await memory.settled()

    room = {group: f"qq:GroupMessage:{group}" for group in GROUPS}

    # 200 messages of 5 members in 2 groups wake nobody.
    for number in range(100):
        user = 880101 + number % 5
        await bot.say(user, f"第{number}句：爬山路线{number}", GROUPS[0])
        await bot.say(user, f"line {number}: the printer on floor {number}", GROUPS[1])
    await heard()
    assert bot.sent.empty(), "the bot was woken"
    assert not server.requests
    for group in GROUPS:
        page = await lore.messages.page(room[group], limit=200)
        assert len(page) == 100, len(page)
        assert {m.sender_id for m in page} == {str(m) for m in MEMBERS}
        assert {m.sender_name for m in page} == set(MEMBERS.values())
    done("ok: 200 messages stored, nobody woken")

    # An answer in a group sees that group only, and knows who speaks although two have one name.
    await bot.say(880103, "周六去香山的集合时间是早上八点", GROUPS[0])
    await bot.say(880104, "集合时间几点？", GROUPS[0], at=True)
    place, text = await bot.next()
    assert (place, text) == (GROUPS[0], "好的。"), (place, text)
    block = block_of(server.requests[-1])
    assert "早上八点" in block, block
    assert "printer" not in block, block
    assert "user:880104" in block, block
    assert server.requests[-1].body["messages"][0]["role"] == "system"
    assert "roomlore" not in json.dumps(server.requests[-1].body["messages"][0]), "memory in the system prompt"
    done("ok: context of the group as a part of the user's message")

    # Replies are stored.
    await heard()
    last = (await lore.messages.page(room[GROUPS[0]], after=100, limit=50))[-1]
    assert (last.role.value, last.text, last.sender_id) == ("assistant", "好的。", str(BOT)), last
    done("ok: the reply is stored")

    # The prefix stays, turn by turn.
    turns = [server.requests[-1].body["messages"]]
    for number in range(4):
        await bot.say(880101, f"那第{number}个问题呢？", GROUPS[0], at=True)
        await bot.next()
        turns.append(server.requests[-1].body["messages"])
    for before, after in pairwise(turns):
        same = common_prefix(before, after)
        assert same >= len(before) - 1, (same, len(before))
        assert sum("<roomlore>" in json.dumps(m, ensure_ascii=False) for m in after) == 1
    for before, after in pairwise(turns[1:]):
        for message in after[: len(before) - 1]:
            assert "<roomlore>" not in json.dumps(message, ensure_ascii=False)
    done("ok: the prefix is the same from turn to turn; one block a request")

    # What was said in private stays there; what a person may know comes up when they are alone.
    await bot.say(880102, "我对花生过敏，别告诉别人", None)
    place, _ = await bot.next()
    assert place == 880102
    now = datetime.now(UTC)
    said = roomlore.EvidenceRoom(room_id="qq:FriendMessage:880102", first=now, last=now)
    await lore.memories.add("user:880102", "Li Na 对花生过敏", evidence=[said])
    await bot.say(880101, "Li Na 吃花生过敏吗？聚餐点什么？", GROUPS[0], at=True)
    await bot.next()
    assert "过敏，别" not in block_of(server.requests[-1]), block_of(server.requests[-1])
    assert "Li Na 对花生过敏" not in json.dumps(server.requests[-1].body, ensure_ascii=False)
    await bot.say(880102, "我能吃花生酱吗？", None)
    await bot.next()
    assert "Li Na 对花生过敏" in block_of(server.requests[-1]), block_of(server.requests[-1])
    done("ok: private stays private")

    # A recall deletes.
    secret = await bot.say(880105, "我的银行卡密码是 445566", GROUPS[0])
    await heard()
    await bot.recall(880105, GROUPS[0], secret)
    await heard()
    assert not [m async for m in lore.messages.export(room[GROUPS[0]]) if "445566" in m.text]
    await bot.say(880101, "阿芳的银行卡密码是多少？", GROUPS[0], at=True)
    await bot.next()
    assert "密码是 445566" not in json.dumps(server.requests[-1].body, ensure_ascii=False)
    done("ok: a recall deletes")

    # Quotes.
    asked = await bot.say(880103, "谁带登山杖？", GROUPS[0])
    answered = await bot.say(880105, "我带两根", GROUPS[0], reply=asked)
    await heard()
    found = (await lore.messages.get(room[GROUPS[0]], str(answered))).message
    assert (found.reply_to, found.text) == (str(asked), "我带两根"), found
    done("ok: a quote is a reply")

    # Commands.
    await bot.say(880104, "/为什么", GROUPS[0])
    _, told = await bot.next()
    assert "阿芳的银行卡密码是多少" in told, told
    await bot.say(880102, "/查看记忆", GROUPS[0])
    _, told = await bot.next()
    assert "花生" not in told, told
    await bot.say(880102, "/查看记忆", None)
    _, told = await bot.next()
    assert "Li Na 对花生过敏" in told, told
    await bot.say(880102, "/memories", None)
    _, told = await bot.next()
    assert told.startswith("What I remember"), told
    await bot.say(880102, "/忘记我", GROUPS[1])
    _, told = await bot.next()
    assert "确认" in told, told
    await bot.say(880102, "/忘记我 确认", GROUPS[1])
    _, told = await bot.next()
    assert told.startswith("已忘记你"), told
    assert not [m async for m in lore.messages.export() if m.sender_id == "880102"]
    done("ok: commands")

    # /reset: what was said before is shown no more.
    await bot.say(880101, "/reset", GROUPS[0])
    await bot.next()
    await bot.say(880104, "集合时间几点？", GROUPS[0], at=True)
    await bot.next()
    assert "早上八点" not in json.dumps(server.requests[-1].body, ensure_ascii=False), block_of(server.requests[-1])
    done("ok: /reset is heard")

    # Backfill.
    folder = ROOT / "data" / "plugin_data" / PLUGIN.name / "imports"
    folder.mkdir(parents=True, exist_ok=True)
    event = {
        "time": 1700000000, "self_id": BOT, "post_type": "message", "message_type": "group", "message_id": 999001,
        "group_id": GROUPS[1], "user_id": 880103, "message": "去年的聚会在西湖",
        "sender": {"nickname": "w", "card": "老王"},
    }  # fmt: skip
    (folder / "old.jsonl").write_text(json.dumps(event, ensure_ascii=False) + "\n", encoding="utf-8")
    await bot.say(880101, "/导入记录 old.jsonl", GROUPS[1])
    _, told = await bot.next()
    assert "已导入 1 条" in told, told
    assert (await lore.messages.get(room[GROUPS[1]], "999001")).message.sender_id == "880103"
    await bot.say(880103, "/导入记录 old.jsonl", GROUPS[1])
    _, told = await bot.next()
    assert "权限" in told, told
    done("ok: backfill by an administrator only")

    # AstrBot's own model writes memories.
    server.default = Says(text='{"action": "create", "statement": "周六爬香山", "evidence": ["c1"]}')
    result = await lore.memories.evolve(room[GROUPS[0]], mode="llm")
    assert result.changes, result
    done("ok: AstrBot's own model evolves the memories")


if __name__ == "__main__":
    try:
        asyncio.run(walk())
        done("all done")
    finally:
        shutil.rmtree(ROOT, ignore_errors=True)
        sys.stdout.flush()
