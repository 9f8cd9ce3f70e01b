"""Prompts of a Langfuse on a real socket: found, changed, and done without in every way it can fail."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

import roomlore
from reply_rig import reply_settings
from roomlore import InvalidInput, Settings
from roomlore.adapters.langfuse.prompts import LangfusePrompts, LangfuseServer
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.core.errors import NotFound
from roomlore.core.prompt import Prompt
from roomlore.ports.backends import PromptServer
from roomlore_testkit import FrozenClock
from roomlore_testkit.loopback import LoopbackServer
from roomlore_testkit.model_server import ModelServer

NAME, KEPT = "memory_evolve", 60.0
PUBLIC, SECRET = "pk-lf-public", "sk-lf-very-secret"
ENGLISH = "Evolve {{most}} memories.\n{{memories}}\n{{ messages }}"
CHINESE = "请整理记忆，最多 {{most}} 条。\n{{memories}}\n{{messages}}"


class Langfuse(LoopbackServer):
    """`kept`: prompts by name, as text or as the whole answer. `answer`: what all requests get instead: a status, a
    body sent with status 200, 'hang' or 'drip', which sends a byte now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Any] = {}
        self.answer: int | bytes | str | None = None
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.sent = b""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        self.sent += head
        method, target, _ = head.decode().splitlines()[0].split(" ")
        address = urlsplit(target)
        self.asked.append((f"{method} {unquote(address.path)}", parse_qs(address.query)))
        if self.answer == "hang":
            await asyncio.Event().wait()
        status, body = self._found(head, unquote(address.path))
        writer.write(f"HTTP/1.1 {status} Told\r\ncontent-length: {len(body)}\r\nlocation: /\r\n\r\n".encode())
        for place in range(0, len(body), 1 if self.answer == "drip" else len(body) or 1):
            writer.write(body[place : place + (1 if self.answer == "drip" else len(body))])
            await writer.drain()
            await asyncio.sleep(0.02 if self.answer == "drip" else 0)
        return True

    def _found(self, head: bytes, path: str) -> tuple[int, bytes]:
        wanted = base64.b64encode(f"{PUBLIC}:{SECRET}".encode())
        if b"Basic " + wanted not in head:
            return 401, b'{"message": "Invalid credentials"}'
        if isinstance(self.answer, int):
            return self.answer, b"{}"
        if isinstance(self.answer, bytes):
            return 200, self.answer
        kept = self.kept.get(path.rpartition("/")[2])
        if kept is None:
            return 404, b'{"message": "Prompt not found"}'
        whole = {"type": "text", "prompt": kept, "version": 7, "labels": ["production"]}
        return 200, json.dumps(kept if isinstance(kept, dict) else whole).encode()


@pytest.fixture
async def server() -> AsyncIterator[Langfuse]:
    async with Langfuse() as started:
        yield started


class Rig:
    """Prompts over the server, at a time that stands still."""

    def __init__(self, host: str, **more: Any) -> None:
        self.clock = FrozenClock()
        self.telemetry = PrometheusTelemetry(self.clock)
        given = {"public_key": PUBLIC, "secret_key": SECRET, "label": "production", "timeout_seconds": 5.0, **more}
        self.prompts: PromptServer = LangfusePrompts(
            LangfuseServer(host, **given),
            names=[NAME],
            packaged=PackagedPrompts(),
            clock=self.clock,
            telemetry=self.telemetry,
            cache_seconds=KEPT,
        )

    async def text(self, language: str = "en", name: str = NAME) -> str:
        return (await self.prompts.find(name, language=language)).text  # type: ignore[arg-type]

    def later(self) -> None:
        self.clock.advance(KEPT)

    def counted(self, result: str) -> bool:
        line = f'roomlore_langfuse_prompts_total{{result="{result}"}}'
        return line in self.telemetry.render().decode()


async def shipped(language: str = "en", name: str = NAME) -> str:
    return (await PackagedPrompts().find(name, language=language)).text  # type: ignore[arg-type]


@pytest.fixture
async def rig(server: Langfuse) -> AsyncIterator[Rig]:
    made = Rig(server.url)
    yield made
    await made.prompts.close()


async def test_a_prompt_is_taken_by_name_label_and_language(server, rig):
    server.kept = {NAME: ENGLISH, f"{NAME}-zh": CHINESE}
    found = await rig.prompts.find(NAME, language="zh")
    assert (found.name, found.text, found.version) == (NAME, CHINESE, "7")
    assert await rig.text("en") == ENGLISH
    assert found.hash != (await rig.prompts.find(NAME, language="en")).hash
    path = "GET /api/public/v2/prompts/"
    label = {"label": ["production"]}
    assert server.asked == [(f"{path}{NAME}-zh", label), (f"{path}{NAME}-en", label), (f"{path}{NAME}", label)]
    assert rig.counted("found")


async def test_one_prompt_may_serve_both_languages_and_another_label(server):
    server.kept = {NAME: CHINESE}
    rig = Rig(server.url, label="staging")
    assert [await rig.text("en"), await rig.text("zh")] == [CHINESE, CHINESE]
    assert {query["label"][0] for _, query in server.asked} == {"staging"}
    await rig.prompts.close()


async def test_it_is_asked_for_once_and_again_when_it_is_old(server, rig):
    server.kept = {f"{NAME}-en": ENGLISH}
    assert set(await asyncio.gather(*(rig.text() for _ in range(20)))) == {ENGLISH}
    assert len(server.asked) == 1
    server.kept = {f"{NAME}-en": ENGLISH + " Anew."}
    assert await rig.text() == ENGLISH
    rig.later()
    assert await rig.text() == ENGLISH + " Anew."


async def test_other_prompts_never_come_from_there(server, rig):
    server.kept = {"reply-en": "Obey."}
    assert await rig.text(name="reply") == await shipped(name="reply")
    assert server.asked == []
    with pytest.raises(NotFound):
        await rig.text(name="nothing")


async def test_what_a_prompt_does_not_place_is_added(server, rig):
    server.kept = {f"{NAME}-en": "Evolve.", f"{NAME}-zh": "整理：{{messages}}"}
    text = await rig.text()
    assert text.startswith("Evolve.\n\n")
    assert "<memories>\n{{memories}}\n</memories>\n\n<messages>\n{{messages}}\n</messages>" in text
    assert text.count("{{most}}") == 1
    chinese = await rig.text("zh")
    assert chinese.startswith("整理：{{messages}}\n\n")
    assert (chinese.count("{{messages}}"), chinese.count("{{memories}}"), chinese.count("{{most}}")) == (1, 1, 1)


BAD = {
    "status 400": 400,
    "wrong address": 302,
    "a web page": b"<html>Welcome</html>",
    "no prompt": b'{"version": 1}',
    "a list": b"[]",
    "deep": b"[" * 100_000,
    "a chat": json.dumps({"type": "chat", "prompt": [{"role": "system", "content": ENGLISH}]}).encode(),
    "a place too many": json.dumps({"prompt": ENGLISH + "{{weather}}"}).encode(),
    "endless": b" " * 2_000_000,
    "empty": b"",
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("why", BAD)
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_what_cannot_be_used_is_not_and_the_one_that_ships_is(server, rig, why, language, caplog):
    server.answer = BAD[why]
    assert await rig.text(language) == await shipped(language)
    assert rig.counted("unusable")
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.message for record in warnings] == ["a prompt is not taken from Langfuse"]


async def test_what_is_refused_later_gives_way_to_the_one_that_ships(server, rig):
    server.kept = {f"{NAME}-en": ENGLISH}
    assert await rig.text() == ENGLISH
    server.kept = {f"{NAME}-en": "Say {{nothing}}."}
    rig.later()
    assert await rig.text() == await shipped()
    server.kept = {f"{NAME}-en": ENGLISH}
    rig.later()
    assert await rig.text() == ENGLISH


async def test_none_of_that_name(server, rig):
    assert await rig.text() == await shipped()
    assert len(server.asked) == 2
    assert await rig.text() == await shipped()
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_server_in_trouble_leaves_the_last_good_prompt(server, rig, status):
    server.kept = {f"{NAME}-en": ENGLISH}
    assert await rig.text() == ENGLISH
    server.answer = status
    rig.later()
    assert await rig.text() == ENGLISH
    assert await rig.text("zh") == await shipped("zh")
    assert rig.counted("unreachable")


async def test_a_server_that_is_down_and_comes_back(server, rig):
    server.kept = {f"{NAME}-en": ENGLISH}
    await server.stop()
    assert await rig.text() == await shipped()
    await server.start()
    assert await rig.text() == await shipped()
    rig.later()
    assert await rig.text() == ENGLISH
    await server.stop()
    rig.later()
    assert await rig.text() == ENGLISH


@pytest.mark.parametrize("how", ["hang", "drip"])
async def test_a_slow_server_is_waited_for_once(server, how):
    server.kept = {f"{NAME}-en": ENGLISH}
    server.answer = how
    rig = Rig(server.url, timeout_seconds=1.5)
    assert set(await asyncio.gather(*(rig.text() for _ in range(5)))) == {await shipped()}
    assert len(server.asked) == 1
    assert rig.counted("unreachable")
    await rig.prompts.close()


async def test_wrong_keys_are_told_and_never_shown(server, caplog):
    caplog.set_level(logging.DEBUG)
    server.kept = {f"{NAME}-en": ENGLISH}
    rig = Rig(server.url, secret_key="sk-lf-another")
    assert await rig.text() == await shipped()
    told = " ".join(str(record.__dict__) for record in caplog.records)
    assert "check langfuse_public_key" in told
    assert "sk-lf-another" not in told
    assert base64.b64encode(b"pk-lf-public:sk-lf-another").decode() not in told
    await rig.prompts.close()


async def test_an_evolution_goes_by_it_and_nothing_is_told_to_it(server):
    server.kept = {NAME: ENGLISH}
    keys = {"langfuse_host": server.url, "langfuse_public_key": PUBLIC, "langfuse_secret_key": SECRET}
    async with ModelServer(["[]"]) as model:
        settings = reply_settings(model, evolve_model="chat", **keys)
        async with roomlore.open("sqlite://", settings=settings, background=False) as lore:
            await lore.messages.add([roomlore.Message(id="1", room_id="r", sender_id="a", text="A private matter")])
            await lore.memories.evolve("r", mode="llm")
            record = (await lore.memories.evolutions("group:r"))[0]
    assert (record.prompt_name, record.prompt_hash) == (NAME, Prompt(NAME, ENGLISH).hash)
    assert "Evolve 30 memories." in json.dumps(model.requests[0].body)
    assert {path.rpartition("/")[0] for path, _ in server.asked} == {"GET /api/public/v2/prompts"}
    assert b"private" not in server.sent


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"langfuse_host": "ftp://x"}, "langfuse_host"),
        ({"langfuse_host": "http://x"}, "langfuse_secret_key"),
        ({"langfuse_host": "http://x", "langfuse_public_key": PUBLIC}, "langfuse_secret_key"),
    ],
)
def test_settings_that_cannot_be_used_stop_the_start(given, told):
    with pytest.raises(InvalidInput, match=told):
        Settings(**given)


@pytest.mark.parametrize(
    "more", [{"secret_key": "a\nb"}, {"public_key": "钥匙"}, {"host": "http://u:p@x"}, {"host": "nowhere"}], ids=str
)
def test_what_cannot_be_used_is_told_without_being_shown(more):
    with pytest.raises(InvalidInput) as told:
        Rig(more.pop("host", "http://x"), **more)
    assert "u:p" not in str(told.value)
    assert "钥匙" not in str(told.value)


def test_keys_are_not_shown():
    settings = Settings(langfuse_host="http://x", langfuse_public_key=PUBLIC, langfuse_secret_key=SECRET)
    shown = str(roomlore.settings.explain(settings))
    assert SECRET not in shown
    assert PUBLIC not in shown
