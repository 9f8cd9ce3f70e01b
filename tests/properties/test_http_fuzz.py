"""Schemathesis over the OpenAPI document, against a real server: what it calls valid is accepted, all else refused, and
every answer is as described."""

import asyncio
import contextlib
import subprocess
import sys
import threading

import httpx
import pytest

import roomlore
from roomlore_server.http import create_app, serve
from roomlore_testkit.model_server import serve_models

CONFIG = """
hooks = "relations"
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 413, 415, 422]  # 413: too many items are too many values too
"""
RELATIONS = '''
"""What OpenAPI cannot say of a valid request: how its fields stand to each other and to what is stored."""
import schemathesis

ORDERED = {"since": "until", "from": "to"}
WEIGHT = "reply_chain_weight"  # of a room, whose weights are not all 0
OF_A_REPLY = ("model_context_window", "max_tokens", "tool_results")  # room for the prompt; calls asked for before


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    for first, last in ORDERED.items():
        if first in (case.query or {}):
            case.query.pop(last, None)
    if "since" in (case.query or {}) and case.operation.path.endswith("/digest"):
        case.query["since"] = "yesterday"  # is a time in words
    if "for_user" in (case.query or {}):
        case.query.pop("viewer", None)  # is the same person
    if (case.operation.method.upper(), case.operation.path) == ("DELETE", "/rooms/{room_id}"):
        case.query = {**(case.query or {}), "dry_run": "true"}  # needs no confirmation
    if case.operation.path.startswith("/memory/changes/"):
        newest_first = str((case.query or {}).get("newest_first")).lower() in ("true", "1")
        (case.query or {}).pop("after" if newest_first else "before", None)  # is the other direction
    if not isinstance(case.body, dict):
        return
    if case.body.get("since"):
        case.body["since"] = "2000-01-01"  # is past
    for member in (*(case.body.get("members") or ()), *(case.body.get("add") or ())):
        if isinstance(member, dict):
            member.pop("left_at", None)  # is not before joined_at
    case.body.pop("checkpoint_token", None)  # is of a context that was given out
    if WEIGHT in case.body:
        case.body[WEIGHT] = 1
    if "message" in case.body:
        if case.body.get("room_id") and case.body["message"].get("room_id"):
            case.body["message"]["room_id"] = case.body["room_id"]  # is the same room
        for name in OF_A_REPLY:
            case.body.pop(name, None)
        if case.body.get("tools"):
            case.body["tools"] = case.body["tools"][:1]  # each has a name of its own
    for fact in (case.body, *case.body.get("facts", ())):
        if fact.get("valid_from"):
            fact.pop("valid_until", None)  # is after it
        if fact.get("sources"):
            fact["sources"] = [{"room_id": "tea", "message_id": "m1"}]
            (case.query or {}).pop("viewer", None)  # may see the message
'''
DOCUMENT = create_app(roomlore.Settings(database_url="sqlite://")).openapi()
TAGS = sorted({tag for path in DOCUMENT["paths"].values() for one in path.values() for tag in one["tags"]})
ANSWER = '{"action": "create", "statement": "They count", "evidence": ["c1"]}'


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of its own in a thread, with one room in its store and a model to ask; gives its URL."""
    with serve_models(default=ANSWER) as model:
        yield from running(tmp_path_factory, model.url)


def running(tmp_path_factory, model_url: str):
    settings = roomlore.Settings(
        models={
            "memory-evolve-model": {"internal": True, "providers": [{"name": "here", "model_id": "tiny"}]},
            "tiny": {"providers": [{"name": "here", "model_id": "tiny"}]},
        },
        providers={"here": {"base_url": model_url}},
        database_url=f"sqlite:///{tmp_path_factory.mktemp('fuzz')}/fuzz.db",
        port=0,
        durable_work="process",
    )
    with roomlore.open_sync(settings.database_url, settings=settings) as lore:
        lore.messages.add([roomlore.Message(id=f"m{n}", room_id="tea", sender_id="ann", text=f"{n}") for n in range(3)])
        lore.memories.add("user:ann", "1", memory_id="f1")
    ready, urls, tasks = threading.Event(), [], []

    def listening(url: str) -> None:
        urls.append(url)
        tasks.append((asyncio.get_running_loop(), asyncio.current_task()))
        ready.set()

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(serve(settings, listening=listening))

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60)
    yield urls[0]
    loop, task = tasks[0]
    loop.call_soon_threadsafe(task.cancel)
    thread.join(60)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def document(server):
    """What the server answers. Schemathesis would wait ten seconds for it, which is not enough on a busy machine."""
    return httpx.get(f"{server}/openapi.json", timeout=60).raise_for_status().text


@pytest.mark.parametrize("tag", TAGS)
def test_the_document_says_what_is_accepted_and_what_is_answered(server, document, tmp_path, tag):
    """All checks of Schemathesis, by its command line: it walks the limits of every parameter and field, a step inside
    and a step outside, and every method, the same in each run; then a few requests made by chance with a fixed seed."""
    (tmp_path / "openapi.json").write_text(document)
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    (tmp_path / "relations.py").write_text(RELATIONS)
    program = "from schemathesis.cli import schemathesis; schemathesis()"
    asked = [
        "run", "openapi.json", "--url", server, "--include-tag", tag, "--checks", "all", "--mode", "all",
        "--phases", "coverage,fuzzing", "--max-examples", "4", "--generation-deterministic", "--no-shrink",
        "--continue-on-failure", "--warnings", "off", "--suppress-health-check", "all", "--request-timeout", "60",
        "--max-response-time", "60",  # ten seconds by default, which a busy machine may need for 10,000 facts
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program, *asked], cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False
    )
    told = "\n".join(line[:500] for line in f"{done.stdout}{done.stderr}".splitlines())
    assert done.returncode == 0, told[-20_000:]
