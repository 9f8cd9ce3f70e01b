"""The plugin inside a real OpenClaw gateway, with a stand-in of Telegram's Bot API and a scripted model. Run by hand.

    cd plugins/openclaw-roomlore && npm install && npm run build && cd ../..
    .venv/bin/python tests/bots/openclaw_walk.py node plugins/openclaw-roomlore/node_modules/openclaw/openclaw.mjs

The arguments are the command that starts OpenClaw 2026.9.6, with a Node of 24.16 or newer. It prints nothing if all is
well.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from aiohttp import web

FOLDER = Path(__file__).resolve().parents[2] / "plugins" / "openclaw-roomlore"
BOT, ANN, BO, GROUP = 700, 11, 12, -1007
SECRET = "My birthday is October 13, 1993"
SECONDS = 60


class Telegram:
    """Telegram's side. `sent`: the texts that the bot sent, with their chats."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[tuple[int, str]] = asyncio.Queue()
        self._updates: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._ids = count(1)

    async def answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        given = await request.json() if request.can_read_body and "json" in request.content_type else {}
        return web.json_response({"ok": True, "result": await self._result(method.lower(), given)})

    async def _result(self, method: str, given: dict[str, Any]) -> Any:
        if method == "getme":
            return {"id": BOT, "is_bot": True, "first_name": "Bot", "username": "walk_bot",
                    "can_join_groups": True, "can_read_all_group_messages": True}  # fmt: skip
        if method == "getupdates":
            with suppress(TimeoutError):
                return [await asyncio.wait_for(self._updates.get(), 1)]
            return []
        if method == "sendmessage":
            chat = int(given["chat_id"])
            self.sent.put_nowait((chat, given["text"]))
            return {"message_id": 9000 + next(self._ids), "date": 1_770_000_000, "text": given["text"],
                    "chat": {"id": chat, "type": "private" if chat > 0 else "supergroup"}}  # fmt: skip
        if method == "getchat":
            return {"id": given.get("chat_id"), "type": "supergroup", "title": "Tea"}
        return True

    async def says(self, user: int, name: str, text: str, chat: int) -> tuple[int, str]:
        """A person says something. Returns what the bot answers."""
        where = {"id": chat, "type": "private", "first_name": name} if chat > 0 else {
            "id": chat, "type": "supergroup", "title": "Tea"}  # fmt: skip
        number = next(self._ids)
        message = {
            "message_id": number, "date": 1_770_000_000 + number, "text": text, "chat": where,
            "from": {"id": user, "is_bot": False, "first_name": name},
        }  # fmt: skip
        self._updates.put_nowait({"update_id": number, "message": message})
        return await asyncio.wait_for(self.sent.get(), SECONDS)


class Model:
    """A model that answers with a number. `asked`: the bodies of the requests."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        common = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "walk"}
        for delta, reason in (({"role": "assistant", "content": f"Answer {len(self.asked)}."}, None), ({}, "stop")):
            chunk = {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    def system(self) -> str:
        return _text(self.asked[-1]["messages"][0])

    def said(self) -> str:
        """Return what the model got of the user since its last answer."""
        messages = self.asked[-1]["messages"]
        last = max((place for place, one in enumerate(messages) if one["role"] == "assistant"), default=0)
        return "\n".join(_text(one) for one in messages[last:] if one["role"] == "user")


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def settings(home: Path, port: int, roomlore: str) -> dict[str, Any]:
    here = f"http://127.0.0.1:{port}"
    model = {"id": "walk", "name": "walk", "reasoning": False, "input": ["text"], "contextWindow": 64000,
             "maxTokens": 2000, "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}  # fmt: skip
    provider = {"baseUrl": f"{here}/v1", "apiKey": "none", "api": "openai-completions", "models": [model]}
    entry = {"enabled": True, "hooks": {"allowConversationAccess": True}, "config": {"url": roomlore}}
    return {
        "gateway": {"mode": "local", "bind": "loopback", "auth": {"mode": "none"}},
        "models": {"providers": {"walk": provider}},
        "agents": {
            "defaults": {"model": {"primary": "walk/walk"}, "workspace": str(home / "ws"), "skipBootstrap": True}
        },
        "channels": {
            "telegram": {
                "enabled": True, "botToken": f"{BOT}:walk", "apiRoot": here, "dmPolicy": "open", "allowFrom": ["*"],
                "groupPolicy": "open", "groups": {"*": {"requireMention": False}},
            }
        },
        "messages": {"groupChat": {"visibleReplies": "automatic"}},
        "plugins": {
            "load": {"paths": [str(home / "plugin")]},
            "slots": {"memory": "openclaw-roomlore"},
            "entries": {"openclaw-roomlore": entry, "telegram": {"enabled": True}},
        },
    }  # fmt: skip


async def main() -> None:
    """Walk, and raise if something is not as it should be."""
    home = Path(tempfile.mkdtemp(prefix="openclaw-walk-"))
    for name in ("src", "dist", "package.json", "openclaw.plugin.json"):
        copy = shutil.copytree if (FOLDER / name).is_dir() else shutil.copy
        (home / "plugin").mkdir(exist_ok=True)
        copy(FOLDER / name, home / "plugin" / name)
    telegram, model, app = Telegram(), Model(), web.Application()
    app.router.add_route("*", f"/bot{BOT}:walk/{{method}}", telegram.answer)
    app.router.add_post("/v1/chat/completions", model.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    serve = [sys.executable, "-m", "roomlore", "--db", str(home / "chat.db"), "serve", "--port", "0"]
    memory = await asyncio.create_subprocess_exec(
        *serve, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    url = (await memory.stdout.readline()).decode().split()[3]
    (home / "state").mkdir()
    (home / "state" / "openclaw.json").write_text(json.dumps(settings(home, port, url)), encoding="utf-8")
    environment = {**os.environ, "HOME": str(home), "OPENCLAW_STATE_DIR": str(home / "state")}
    with (home / "gateway.log").open("wb") as log:
        gateway = await asyncio.create_subprocess_exec(
            *sys.argv[1:], "gateway", "--port", str(port + 1), env=environment, stdout=log, stderr=log
        )
    try:
        await walk(telegram, model, url)
    except BaseException:
        sys.stderr.write((home / "gateway.log").read_text(encoding="utf-8", errors="replace")[-6000:])
        raise
    finally:
        gateway.terminate()
        memory.terminate()
        await asyncio.gather(gateway.wait(), memory.wait())
        await runner.cleanup()


async def walk(telegram: Telegram, model: Model, url: str) -> None:
    """Ann tells the bot something alone and asks for it in a group; Bo and Ann talk in the group."""
    chat, _ = await telegram.says(ANN, "Ann", SECRET, ANN)
    assert chat == ANN
    first = model.system()
    await telegram.says(ANN, "Ann", "When is my birthday, in October?", GROUP)
    assert "This message is from: Ann (user:telegram:11)" in model.said(), model.said()
    assert "13, 1993" not in json.dumps(model.asked[-1]), "what was said alone came up in the group"
    await telegram.says(BO, "Bo", "The picnic is at the lake on Saturday", GROUP)
    await telegram.says(BO, "Bo", "/reset", GROUP)
    await telegram.says(ANN, "Ann", "And where is the picnic on Saturday?", GROUP)
    assert "This message is from: Ann" in model.said(), model.said()
    assert "at the lake" not in model.said(), "it was said before the reset"
    assert "<roomlore>" not in model.system()
    assert first.split("\n")[0] == model.system().split("\n")[0]
    async with httpx.AsyncClient(trust_env=False) as client:
        room = f"openclaw:telegram:default:{GROUP}"
        said = (await client.get(f"{url}/messages", params={"room_id": room})).json()["messages"]
        rooms = [await client.get(f"{url}/rooms/openclaw:telegram:default:{one}") for one in (ANN, GROUP)]
    assert [one.json()["kind"] for one in rooms] == ["direct", "private"]
    people = [one["sender_id"] for one in said if one["role"] == "user"]
    assert people == ["telegram:11", "telegram:12", "telegram:11"], said
    assert [one["reply_to"] for one in said if one["role"] == "assistant"], said


if __name__ == "__main__":
    asyncio.run(main())
