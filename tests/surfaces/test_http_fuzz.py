"""Schemathesis over the OpenAPI document, against a real server: no answer is a server error, all are as described."""

import asyncio
import contextlib
import threading

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

import roomlore
from roomlore.surfaces.http import create_app, serve
from roomlore.testing.model_server import serve_models

SCHEMA = schemathesis.openapi.from_dict(create_app(roomlore.Settings(database_url="sqlite://")).openapi())
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
KNOWN = {
    "room_id": "tea",
    "conversation_id": "tea",
    "message_id": "m1",
    "q": "1",
    "scope": "user:ann",
    "memory_id": "f1",
    "group_id": "tea",
}
ANSWER = '{"action": "create", "statement": "They count", "evidence": ["c1"]}'


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of its own in a thread, with one room in its store and a model to ask; gives its URL."""
    with serve_models(default=ANSWER) as model:
        yield from running(tmp_path_factory, model.url)


def running(tmp_path_factory, model_url: str):
    settings = roomlore.Settings(
        models={"memory-evolve-model": {"internal": True, "providers": [{"name": "here", "model_id": "tiny"}]}},
        providers={"here": {"base_url": model_url}},
        database_url=f"sqlite:///{tmp_path_factory.mktemp('fuzz')}/fuzz.db",
        port=0,
        durable_work="process",  # DBOS draws random numbers on its threads, which Hypothesis takes for ours
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


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}")
def test_no_answer_is_a_surprise(server, operation):
    @given(case=operation.as_strategy(), known=st.booleans())
    @settings(
        max_examples=25,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case, known):
        for part in (case.path_parameters, case.query, case.body) if known else ():
            if isinstance(part, dict):
                part.update({name: value for name, value in KNOWN.items() if name in part})
        response = case.call(base_url=server, timeout=60)
        case.validate_response(response, checks=CHECKS)

    ask()
