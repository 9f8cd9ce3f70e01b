"""What programs see of roomlore stays as it was recorded: status and body of each call of `corpus.py`.

With ROOMLORE_TEST_RECORD=1 the answers are recorded anew, and git shows what changed. Ids, times, durations and the
prose of errors are not compared.
"""

import json
import math
import os
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import corpus
import httpx
import pytest
import typer.main
from corpus import Call
from mcp import Client
from starlette.routing import Route
from typer.testing import CliRunner

import roomlore
from faces import commands_of, filled
from roomlore.settings import Settings
from roomlore.surfaces.cli.app import app as program
from roomlore_server.http import create_app
from roomlore_server.mcp.server import make_server
from roomlore_server.mcp.tools import Visitor
from roomlore_testkit.model_server import serve_models

RECORDED = Path(__file__).parent / "recorded"
CHANCE = 0.002
"""By how much two numbers may differ: processors add in other orders."""
NO_JSON = ("/console", "/metrics", "/openapi.json", "/mcp")
NOT_THERE = ("/v1/entities/", "/v2/", "/v1/batch/", "/v1/exports/", "/v1/summary/", "/v1/feedback/", "/api/v1/")
"""What mem0's platform has and roomlore answers with 404."""
NO_SUCCESS = {"GET /", "POST /jobs/{job_id:id}/retry"}
COMMANDS_LEFT_OUT = {
    *("chat", "doctor", "models test", "reply", "tune"),  # they need a model, labels, or tell of the machine
    *("archive run", "archive restore", "facts import", "move"),  # they need files
    *("jobs show", "jobs retry", "memory revert", "memory forget"),  # HTTP has them
}
_ID = re.compile(r"\b[0-9a-f]{32}\b|(?<=:)[0-9a-f]{24}\b|\bchatcmpl-\w+")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?")
_UNSTABLE = re.compile(r"_ms$|seconds$|_token$|bytes$")
_DAYS = timedelta(days=60)
"""Times this near to now are those of the run; what is told of has other ones."""
_PROSE = {"detail", "title", "message", "msg", "error", "hint"}


class Plain:
    """Answers without what differs from run to run. An id becomes its number in the order in which ids appear."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._now = datetime.now(UTC)

    def text(self, value: str) -> str:
        value = _ID.sub(lambda found: self._ids.setdefault(found[0], f"<id {len(self._ids) + 1}>"), value)
        return _TIME.sub(self._time, value)

    def _time(self, found: re.Match[str]) -> str:
        read = datetime.fromisoformat(found[0])
        read = read if read.tzinfo else read.replace(tzinfo=UTC)
        return "<now>" if abs(read - self._now) < _DAYS else found[0]

    def of(self, value: Any, *, failed: bool = False) -> Any:
        if isinstance(value, dict):
            return {
                self.text(name): "<...>" if self._is_left_out(name, one, failed) else self.of(one, failed=failed)
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [self.of(one, failed=failed) for one in value]
        if isinstance(value, float):
            return round(value, 4)
        if isinstance(value, int) and abs(value - self._now.timestamp()) < _DAYS.total_seconds():
            return "<now>"
        return self.text(value) if isinstance(value, str) else value

    @staticmethod
    def _is_left_out(name: str, value: Any, failed: bool) -> bool:
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        return plain and bool(_UNSTABLE.search(name) or (failed and name in _PROSE))


def at(answer: Any, path: str) -> str:
    found = answer
    for name in path.split("."):
        known = isinstance(found, list) if name.isdigit() else isinstance(found, dict) and name in found
        assert known, f"no {path} in {answer}"
        found = found[int(name)] if name.isdigit() else found[name]
    return found


def in_json(text: str) -> Any:
    """Return what the text is in JSON, or else each of its lines, in JSON where it is; of an event the content."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) if line[:1] == "{" else line for line in text.replace("data: ", "").splitlines()]


def recorded(name: str) -> list[dict[str, Any]]:
    return json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def compare(name: str, answers: Sequence[Mapping[str, Any]]) -> None:
    """Assert that the answers are those recorded, or record them."""
    path = RECORDED / f"{name}.json"
    if os.environ.get("ROOMLORE_TEST_RECORD"):
        path.write_text(json.dumps(answers, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    known = recorded(name)
    assert [one["call"] for one in answers] == [one["call"] for one in known]
    wrong = [
        f"{number}. {was['call']} {difference}"
        for number, (is_, was) in enumerate(zip(answers, known, strict=True))
        for difference in differences(is_, was)
    ]
    assert wrong == []


def differences(is_: Any, was: Any, path: str = "") -> Iterator[str]:
    if isinstance(is_, dict) and isinstance(was, dict) and is_.keys() == was.keys():
        for name in was:
            yield from differences(is_[name], was[name], f"{path}/{name}")
    elif isinstance(is_, list) and isinstance(was, list) and len(is_) == len(was):
        for number, (one, other) in enumerate(zip(is_, was, strict=True)):
            yield from differences(one, other, f"{path}/{number}")
    elif isinstance(is_, float) and isinstance(was, float):
        if not math.isclose(is_, was, abs_tol=CHANCE):
            yield f"{path}: {was!r}, now {is_!r}"
    elif type(is_) is not type(was) or is_ != was:
        yield f"{path}: {was!r:.300}, now {is_!r:.300}"


async def answers_of(http: httpx.AsyncClient, calls: Sequence[Call]) -> list[dict[str, Any]]:
    plain, names, answers = Plain(), {}, []
    for call in calls:
        method, path = call.name.split(" ")
        answer = await http.request(method, path.format_map(names), **filled(call.given, names))
        body = in_json(answer.text)
        names |= {name: at(body, where) for name, where in call.keeps.items()}
        kind = answer.headers.get("content-type", "").partition(";")[0]
        told = {"status": answer.status_code, "type": kind, "body": plain.of(body, failed=not answer.is_success)}
        answers.append({"call": call.name} | told)
    return answers


def over(lore: roomlore.Lore) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def test_http():
    async with roomlore.open("sqlite://") as lore, over(lore) as http:
        compare("http", await answers_of(http, corpus.HTTP))


async def test_every_route_has_an_answer_that_succeeds():
    answered: dict[str, set[str]] = defaultdict(set)
    for one in (*recorded("http"), *recorded("openai")):
        if one["status"] < 400:
            method, path = one["call"].split(" ")
            answered[method].add(path)
    async with roomlore.open("sqlite://", background=False) as lore:
        routes = {
            (method, route.path): route.path_regex
            for route in create_app(lore).routes
            if isinstance(route, Route) and not route.path.startswith(NO_JSON + NOT_THERE)
            for method in (route.methods or set()) - {"HEAD"}
        }
    missing = {
        f"{method} {path}"
        for (method, path), pattern in routes.items()
        if not any(map(pattern.match, answered[method]))
    }
    assert missing == NO_SUCCESS


def test_every_command_that_answers_in_json_has_an_answer():
    answered = {" ".join(shlex.split(one["call"])[:2]) for one in recorded("commands") if one["status"] == 0}
    missing = {
        name
        for name, options in commands_of(typer.main.get_command(program)).items()
        if "--json" in options and not any(f"{call} ".startswith(f"{name} ") for call in answered)
    }
    assert missing == COMMANDS_LEFT_OUT


async def test_openai():
    with serve_models(["Green tea."]) as model:
        chat = {"providers": [{"name": "here", "model_id": "m"}]}
        settings = Settings(models={"chat": chat}, providers={"here": {"base_url": model.url}}, extract_every=0)
        async with roomlore.open("sqlite://", settings=settings) as lore, over(lore) as http:
            compare("openai", await answers_of(http, corpus.OPENAI))


async def test_mcp():
    plain, names, answers = Plain(), {}, []
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add([roomlore.Message(**filled_times(one)) for one in (*corpus.CHAT, *corpus.OTHER)])
        async with Client(make_server(Visitor(lore=lore, viewer=None))) as client:
            for call in corpus.MCP:
                answer = await client.call_tool(call.name, filled(call.given, names))
                body = in_json("".join(part.text for part in answer.content))
                names |= {name: at(body, where) for name, where in call.keeps.items()}
                told = {"error": bool(answer.is_error), "body": "<...>" if answer.is_error else plain.of(body)}
                answers.append({"call": call.name} | told)
    compare("mcp", answers)


def filled_times(message: Mapping[str, Any]) -> dict[str, Any]:
    return {**message, "sent_at": datetime.fromisoformat(message["sent_at"])}


def test_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(one, ensure_ascii=False) for one in (*corpus.CHAT, *corpus.OTHER)]
    Path("chat.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plain, answers = Plain(), []
    for command in corpus.COMMANDS:
        ran = CliRunner().invoke(program, ["--db", "chat.db", *shlex.split(command)])
        failed = ran.exit_code != 0
        answers.append({"call": command, "status": ran.exit_code, "body": plain.of(in_json(ran.stdout), failed=failed)})
    compare("commands", answers)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.upper().startswith("MEMORY_") or name.upper().endswith("_API_KEY"):
            monkeypatch.delenv(name)
