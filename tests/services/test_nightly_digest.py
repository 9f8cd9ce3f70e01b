"""Digests by a schedule: which rooms, what is sent, signed, once, and what happens if the receiver fails."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

import roomlore
from roomlore import Settings
from roomlore.adapters.webhook import HttpWebhook
from roomlore.core.errors import InvalidInput, Unavailable
from roomlore.core.models import Message
from roomlore.services.digest import DIGEST
from roomlore.services.digest.digest_service import DigestService
from roomlore.wiring import Lore, open_for_command
from roomlore_testkit.builders import START
from roomlore_testkit.doubles import FrozenClock
from roomlore_testkit.loopback import LoopbackServer

SECRET = "signed 签名"


class Receiver(LoopbackServer):
    """A program that takes webhooks, with scripted statuses."""

    def __init__(self, *statuses: str) -> None:
        super().__init__()
        self.statuses = list(statuses)
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/hook?x=1"

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.requests.append((head[0], headers, body))
        status = self.statuses.pop(0) if self.statuses else "204 No Content"
        if status == "hang":
            await asyncio.sleep(60)
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode() if status != "rubbish" else b"hello\n")
        await writer.drain()
        return False


def messages(room_id: str, count: int = 3) -> list[Message]:
    texts = ["Where is the key?", "我们决定野餐改到周五", "see you there \ud800"]
    return [
        Message(id=f"m{n}", room_id=room_id, sender_id=f"u{n}", text=texts[n % 3], sent_at=START + timedelta(minutes=n))
        for n in range(count)
    ]


@asynccontextmanager
async def opened(
    receiver: Receiver, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> AsyncIterator[Lore]:
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: clock)
    monkeypatch.setattr("roomlore.services.digest.nightly.LEAST_MESSAGES", 2)
    monkeypatch.setattr("roomlore.adapters.webhook.SECONDS", 0.5)
    settings = Settings(
        **{
            "digest_schedule": "0 6 * * *",
            "digest_webhook": receiver.url,
            "digest_webhook_secret": SECRET,
            "digest_webhook_private": True,
            "digest_rooms": "tea, 茶",
            "time_zone": "UTC",
            **more,
        }
    )
    async with roomlore.open("sqlite://", settings=settings) as lore:
        yield lore


async def sweep(lore: Lore) -> list[str]:
    """What the background job does at each look."""
    ids = await lore._resources.sweeps[DIGEST]()
    for work_id in ids:
        await lore._resources.durable.wait(work_id, seconds=20)
    return ids


async def test_it_is_sent_once_a_day_signed_and_with_what_is_new(monkeypatch):
    clock = FrozenClock(START)
    async with Receiver() as receiver, opened(receiver, clock, monkeypatch) as lore:
        assert await sweep(lore) == [], "a new database begins at the next time"
        await lore.messages.add([*messages("tea"), *messages("茶", 1), *messages("other")])
        clock.advance(86_400)
        assert len(await sweep(lore)) == 1
        assert await sweep(lore) == []
        (line, headers, body), *rest = receiver.requests
        assert rest == []
        assert line == "POST /hook?x=1 HTTP/1.1"
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        sign = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{sign}"
        told = json.loads(body)
        assert (told["type"], told["room_id"], told["messages"]) == ("digest", "tea", 3)
        assert "野餐改到周五" in told["text"]
        assert {i for entry in told["entries"] for one in entry["lines"] for i in one["message_ids"]} >= {"m0", "m1"}
        clock.advance(86_400)
        assert await sweep(lore) == [], "nothing new was said"
        await lore.messages.add(
            Message(id=f"n{n}", room_id="tea", sender_id="u1", text="the hall is booked", sent_at=clock.now())
            for n in range(2)
        )
        clock.advance(86_400)
        assert len(await sweep(lore)) == 1
        assert json.loads(receiver.requests[1][2])["messages"] == 2


async def test_what_is_said_while_a_digest_is_made_is_sent_once(monkeypatch):
    """A regression: it was sent with this digest, and with the next one too."""
    clock, whole = FrozenClock(START), DigestService.make
    async with Receiver() as receiver, opened(receiver, clock, monkeypatch) as lore:
        await sweep(lore)
        said = messages("tea", 5)
        await lore.messages.add(said[:3])
        between = iter([said[3:]])

        async def late(*given: Any, **named: Any) -> Any:
            await lore.messages.add(next(between, ()))
            return await whole(*given, **named)

        monkeypatch.setattr(DigestService, "make", late)
        for _ in range(2):
            clock.advance(86_400)
            assert len(await sweep(lore)) == 1
    assert [json.loads(body)["messages"] for _, _, body in receiver.requests] == [3, 2]


async def test_a_digest_that_was_not_accepted_is_sent_again_as_it_was(monkeypatch):
    clock = FrozenClock(START)
    async with Receiver("500 Oh") as receiver, opened(receiver, clock, monkeypatch) as lore:
        await sweep(lore)
        await lore.messages.add(messages("tea"))
        clock.advance(86_400)
        (work_id,) = await lore._resources.sweeps[DIGEST]()
        await lore._resources.durable.wait(work_id, seconds=20)
        first, second = receiver.requests
        assert first[2] == second[2]
        assert first[1]["webhook-id"] == second[1]["webhook-id"]


@pytest.mark.parametrize(("rooms", "wanted"), [("", {"open"}), ("*", {"open", "tea"}), ("tea,nowhere", {"tea"})])
async def test_rooms_are_public_ones_unless_they_are_named(monkeypatch, rooms, wanted):
    clock = FrozenClock(START)
    async with Receiver() as receiver, opened(receiver, clock, monkeypatch, digest_rooms=rooms) as lore:
        await sweep(lore)
        await lore.messages.add([*messages("tea"), *messages("open")])
        await lore.rooms.set_kind("open", "public")
        clock.advance(86_400)
        await sweep(lore)
        assert {json.loads(body)["room_id"] for _, _, body in receiver.requests} == wanted


@pytest.mark.parametrize(
    ("status", "why"),
    [("302 Found", "redirects"), ("400 No", "status 400"), ("rubbish", "cannot be reached"), ("hang", "longer than")],
)
async def test_the_adapter_says_why_it_failed(monkeypatch, status, why):
    monkeypatch.setattr("roomlore.adapters.webhook.SECONDS", 0.5)
    async with Receiver(status) as receiver:
        hook = HttpWebhook(receiver.url, secret=SECRET, private=True, clock=FrozenClock(START))
        with pytest.raises(Unavailable, match=why):
            await hook.send(b"{}", message_id="m")


async def test_the_adapter_refuses_private_addresses_and_says_if_nobody_listens():
    async with Receiver() as receiver:
        url = receiver.url
        for given in (url, url.replace("127.0.0.1", "localhost")):
            hook = HttpWebhook(given, secret=SECRET, private=False, clock=FrozenClock(START))
            with pytest.raises(InvalidInput, match="private address"):
                await hook.send(b"{}", message_id="m")
        assert receiver.requests == []
    hook = HttpWebhook(url, secret=SECRET, private=True, clock=FrozenClock(START))
    with pytest.raises(Unavailable, match="cannot be reached"):
        await hook.send(b"{}", message_id="m")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"digest_webhook": "https://example.com/x"}, "digest_webhook_secret"),
        ({"digest_webhook": "http://example.com/x", "digest_webhook_secret": "s"}, "https"),
        ({"digest_schedule": "0 6 * * *"}, "digest_webhook"),
        ({"digest_schedule": "soon", "digest_webhook": "https://e.org", "digest_webhook_secret": "s"}, "cron"),
    ],
)
def test_settings_that_cannot_work_stop_the_start(given, why):
    with pytest.raises(InvalidInput, match=why):
        Settings(**given)


async def test_a_webhook_that_cannot_be_used_is_told_to_every_command():
    settings = Settings(
        database_url="sqlite://", digest_webhook="https://ann@example.org/", digest_webhook_secret="secret"
    )
    with pytest.raises(InvalidInput, match="without a user's name"):
        async with open_for_command(settings, tenant="default"):
            pass
