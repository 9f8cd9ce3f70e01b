"""From an error nobody foresaw to a receiver of Sentry's on a loopback socket: what comes, and what is not in it."""

import asyncio
import gzip
import json
import logging
import sys
from pathlib import Path

import httpx
import pytest

import roomlore
from forked_process import run_forked
from roomlore.adapters.inprocess import InProcessJobs
from roomlore.adapters.sentry import open_reports
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.services.jobs import counted
from roomlore.settings import Settings
from roomlore.wiring import diagnose
from roomlore_server.http import create_app
from roomlore_testkit import FrozenClock
from roomlore_testkit.loopback import LoopbackServer

SECRET = "金库密码 the vault opens with 7319"
PUBLIC = "b0b0feedfeedfeedfeedfeedfeedfeed"
HIDDEN = "c0ffeec0ffeec0ffeec0ffeec0ffeec0"
NOWHERE = f"http://{PUBLIC}@127.0.0.1:9/1"


class Receiver(LoopbackServer):
    """Keeps the envelopes that are sent; answers nothing where it is `still`."""

    def __init__(self, *, still: bool = False) -> None:
        super().__init__()
        self.still = still
        self.heads: list[str] = []
        self.bodies: list[bytes] = []

    @property
    def dsn(self) -> str:
        return f"http://{PUBLIC}:{HIDDEN}@127.0.0.1:{self._port}/below/7"

    async def _answer_one(self, reader, writer) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.splitlines()[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.heads.append(head)
        self.bodies.append(unpacked(body, headers.get("content-encoding", "")))
        if self.still:
            await asyncio.Event().wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()
        return True

    def events(self) -> list[dict]:
        """An envelope is a head, then a head and a line for each thing in it."""
        return [json.loads(body.splitlines()[2]) for body in self.bodies if body]


def unpacked(body: bytes, encoding: str) -> bytes:
    if encoding == "br":  # what the SDK chooses where the package is there
        return pytest.importorskip("brotli").decompress(body)
    return gzip.decompress(body) if encoding == "gzip" else body


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "SENTRY_DSN", "SENTRY_ENVIRONMENT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def receiver():
    async with Receiver() as server:
        yield server


def breaks() -> None:
    quoted = SECRET
    raise KeyError(quoted)


async def ask(settings: Settings) -> None:
    """A message is told, and then a route breaks where nobody foresaw it."""
    async with roomlore.open("sqlite://", settings=settings) as lore:
        app = create_app(lore)
        app.add_api_route("/broken/{room_id}", breaks, methods=["POST"])
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            message = {"id": "m1", "room_id": SECRET, "sender_id": SECRET, "text": SECRET}
            assert (await client.post("/messages", json={"messages": [message]})).status_code == 200
            assert (await client.get(f"/messages/{SECRET}/nowhere")).status_code == 404
            headers = {"X-Request-Id": "sentry-8", "Cookie": "theme=vault"}
            answer = await client.post(f"/broken/{SECRET}", json={"room_id": SECRET}, headers=headers)
            assert answer.status_code == 500


async def test_an_error_nobody_foresaw_arrives_by_its_type_and_place(receiver):
    await ask(Settings(sentry_dsn=receiver.dsn))
    (event,) = receiver.events()
    assert event["level"] == "error"
    assert event["tags"] == {"method": "POST", "route": "/broken/{room_id}", "request_id": "sentry-8"}
    *_, error = event["exception"]["values"]
    assert (error["type"], error["module"]) == ("KeyError", "builtins")
    last = error["stacktrace"]["frames"][-1]
    assert (last["function"], last["filename"]) == ("breaks", "test_sentry.py")
    assert any(frame["in_app"] for frame in error["stacktrace"]["frames"])
    assert receiver.heads[0].startswith("POST /below/api/7/envelope/ ")


async def test_what_arrives_holds_nobodys_text_and_no_key(receiver):
    await ask(Settings(sentry_dsn=receiver.dsn))
    sent = b"".join(receiver.bodies)
    assert b"KeyError" in sent
    for planted in (SECRET, "金库", "vault", "7319", HIDDEN):
        assert planted.encode() not in sent
        assert json.dumps(planted)[1:-1].encode() not in sent
    (event,) = receiver.events()
    assert set(event) <= {
        *("event_id", "timestamp", "platform", "level", "release", "environment", "sdk", "exception", "tags"),
        *("contexts", "extra"),
    }  # fmt: skip
    assert "/home" not in sent.decode()
    assert sys.prefix not in sent.decode()


async def test_causes_and_groups_are_told_too(receiver):
    reports = open_reports(receiver.dsn)
    try:
        try:
            breaks()
        except KeyError as cause:
            raise ExceptionGroup(SECRET, [ValueError(SECRET), OSError(SECRET)]) from cause
    except ExceptionGroup as error:
        reports.tell(error, attributes={"kind": "演化 evolution"})
    await reports.close()
    (event,) = receiver.events()
    assert [one["type"] for one in event["exception"]["values"]] == [
        "KeyError",
        "OSError",
        "ValueError",
        "ExceptionGroup",
    ]
    assert event["tags"] == {"kind": "演化 evolution"}
    assert b"vault" not in receiver.bodies[0]


async def test_work_and_background_jobs_are_told_once_for_each_trouble(receiver):
    reports = open_reports(receiver.dsn)
    telemetry, failures = PrometheusTelemetry(FrozenClock(), reports=reports), asyncio.Event()

    async def broken(*_: object) -> None:
        breaks()

    count = 0

    async def sweep() -> None:
        nonlocal count
        count += 1
        if count == 2:
            failures.set()
        raise roomlore.StorageUnavailable(SECRET) if count > 2 else ZeroDivisionError(SECRET)

    jobs = InProcessJobs(telemetry=telemetry)
    jobs.handle("sweep", sweep, every_seconds=0.01)
    await failures.wait()
    with pytest.raises(KeyError):
        await counted("extraction", broken, clock=FrozenClock(), telemetry=telemetry)(None, {})
    await jobs.close()
    await reports.close()
    told = {event["exception"]["values"][-1]["type"]: event["tags"] for event in receiver.events()}
    assert told == {"ZeroDivisionError": {"job": "sweep"}, "KeyError": {"kind": "extraction"}}
    assert len(receiver.events()) == 2


async def test_work_is_told_with_its_id_but_not_its_tenant(receiver):
    settings = Settings(sentry_dsn=receiver.dsn, durable_work="process")
    async with roomlore.open("sqlite://", settings=settings, tenant="茶室 acme", background=False) as lore:
        durable = lore._resources.durable

        async def broken(*_: object) -> None:
            breaks()

        durable.define("test", counted("test", broken, clock=FrozenClock(), telemetry=lore.telemetry))
        await durable.start("test", work_id="%E8%8C%B6acme:test:x1", partition="p", arguments={})
        await lore.jobs.begin()
        await durable.wait("%E8%8C%B6acme:test:x1", seconds=1)  # it is tried again and again
    tags = [event["tags"] for event in receiver.events()]
    assert tags[0] == {"kind": "test", "work_id": "test:x1"}
    assert b"acme" not in b"".join(receiver.bodies)


async def test_what_roomlore_foresees_is_not_told(receiver):
    reports = open_reports(receiver.dsn)
    PrometheusTelemetry(FrozenClock(), reports=reports).unforeseen(roomlore.StorageUnavailable(SECRET))
    await reports.close()
    assert receiver.bodies == []


async def test_a_sentry_that_is_away_costs_a_line_of_log_and_no_answer(caplog):
    with caplog.at_level(logging.WARNING, logger="roomlore"):
        await ask(Settings(sentry_dsn=NOWHERE))
    assert any("could not be told to Sentry" in record.message for record in caplog.records)
    assert PUBLIC not in caplog.text


async def test_a_sentry_that_never_answers_is_not_waited_for_long():
    async with Receiver(still=True) as receiver, asyncio.timeout(60):
        await ask(Settings(sentry_dsn=receiver.dsn))
        assert receiver.heads


async def test_telling_does_not_wait_for_the_receiver():
    async with Receiver(still=True) as receiver:
        reports = open_reports(receiver.dsn)

        def tell_many() -> None:
            for _ in range(500):
                reports.tell(ValueError(SECRET))

        async with asyncio.timeout(60):
            await asyncio.to_thread(tell_many)
            await reports.close()
    assert len(receiver.bodies) <= 1


async def test_without_the_setting_nothing_is_sent(receiver, monkeypatch):
    monkeypatch.setenv("SENTRY_DSN", receiver.dsn)
    await ask(Settings())
    assert receiver.heads == []


def test_without_the_setting_the_sdk_is_not_even_loaded():
    """In a process that is forked from one which has opened a store."""
    program = """
import asyncio, sys, roomlore
async def main():
    async with roomlore.open("sqlite://"):
        pass
asyncio.run(main())
print("roomlore.wiring" in sys.modules, "sentry_sdk" in sys.modules)
"""
    Path("opens.py").write_text(program, encoding="utf-8")
    assert run_forked(Path("opens.py").absolute()).stdout == "True False\n"


@pytest.mark.parametrize(
    "dsn",
    [
        "sentry.example/1", f"https://{PUBLIC}@sentry.example/", f"https://{PUBLIC}@sentry.example/茶", "https://sentry.example/1",
        f"ftp://{PUBLIC}@sentry.example/1", f"https://{PUBLIC}@sentry.example:none/1",
        f"https://{PUBLIC}@sentry.example:65536/1",
    ],
)  # fmt: skip
def test_a_dsn_that_is_none_stops_the_start_and_is_not_shown(dsn):
    with pytest.raises(roomlore.InvalidInput, match=r"sentry_dsn is \*\*\* .*https://PUBLIC_KEY@HOST/") as refused:
        Settings(sentry_dsn=dsn)
    assert PUBLIC not in str(refused.value)


async def test_the_doctor_says_whether_it_answers(receiver):
    async def found(dsn: str):
        findings = await diagnose(Settings(database_url="sqlite://", sentry_dsn=dsn), timeout_seconds=60)
        return next(one for one in findings if one.part == "sentry")

    reached = await found(receiver.dsn)
    assert reached.verdict in ("ok", "warn")
    assert "127.0.0.1" in reached.told
    assert PUBLIC not in f"{reached}{receiver.heads}"
    assert (await found(NOWHERE)).verdict == "fail"
    assert "not used" in (await found("")).told
