"""Quotas over HTTP and on the command line."""

import json
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

import roomlore
from reply_rig import asks, gathered, replying
from roomlore.core.errors import TokensExceeded
from roomlore.settings import Settings
from roomlore.surfaces.cli.app import app as program
from roomlore_testkit import FrozenClock
from roomlore_testkit.model_server import Says

NOON = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)
MESSAGE = {"id": "a", "room_id": "team", "sender_id": "ann", "text": "The deploy is done."}


@pytest.fixture
def settings():
    return Settings(quota_messages_a_day=1, quota_requests_a_minute=6)


@pytest.fixture(autouse=True)
def _one_minute(lore, monkeypatch):
    """No test crosses the end of a minute."""
    monkeypatch.setattr(lore._resources.quotas, "_clock", FrozenClock(NOON))


async def test_what_is_too_much_is_answered_with_429_and_when_to_come_back(http, lore):
    assert (await http.post("/messages", json=MESSAGE)).status_code == 200
    refused = await http.post("/messages", json={**MESSAGE, "id": "b"})
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["retry-after"] == str(12 * 3600 - 30)
    problem = refused.json()
    assert problem["type"] == "urn:roomlore:quota-exceeded"
    assert "1 of the 1 messages that it may add in a day" in problem["detail"]
    assert (await http.get("/rooms")).status_code == 200, "other requests go on"


async def test_requests_are_limited_but_not_those_for_health_and_metrics(http, lore):
    for _ in range(6):
        assert (await http.get("/rooms")).status_code == 200
    refused = await http.get("/rooms")
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "30"
    assert (await http.get("/health/live")).status_code == 200
    metrics = await http.get("/metrics")
    assert metrics.status_code == 200
    assert 'roomlore_quota_limit{limit="requests_a_minute",tenant="default"} 6.0' in metrics.text
    assert 'roomlore_quota_refusals_total{limit="requests_a_minute",tenant="default"} 1.0' in metrics.text


async def test_requests_of_one_tenant_do_not_count_for_another(lore, connect):
    keys = [(await lore.for_tenant(name).keys.create(name))[1] for name in ("one", "two")]
    async with connect(key=keys[0]) as one, connect(key=keys[1]) as two:
        codes = [(await one.get("/models")).status_code for _ in range(7)]
        assert codes == [200] * 6 + [429]
        assert (await two.get("/models")).status_code == 200


async def test_clients_of_openai_read_it_as_a_rate_limit(http, lore):
    await lore.quotas.set(requests_a_minute=0)
    refused = await http.post("/v1/chat/completions", json={"model": "x", "messages": []})
    assert refused.status_code == 429
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"


async def test_tokens_of_models_are_counted_and_no_reply_begins_without_some():
    async with replying(quota_model_tokens_a_day=5) as (lore, server):
        first = await lore.replies.reply(asks())
        (told,) = [one for one in await lore.quotas.standing() if one.limit == "model_tokens_a_day"]
        assert told.used == first.usage.input_tokens + first.usage.output_tokens > 5
        with pytest.raises(TokensExceeded) as refused:
            await lore.replies.reply(asks(message_id="again"))
        assert "tokens of models that it may use in a day" in str(refused.value)
        assert len(server.requests) == 1
        assert len(await lore.messages.page("r")) == 2, "the refused message is not stored"


async def test_a_reply_that_was_paid_for_is_stored():
    async with replying(quota_messages_a_day=1) as (lore, _):
        reply = await lore.replies.reply(asks())
        assert [one.text for one in await lore.messages.page("r")] == [asks().text, reply.text]
        with pytest.raises(roomlore.QuotaExceeded):
            await lore.replies.reply(asks(message_id="again"))


async def test_a_reply_that_has_begun_is_given_again_and_goes_on():
    look = roomlore.Tool("look", "Looks something up.", {"type": "object"})
    wants = Says(text="", tool_calls=(roomlore.ToolCall("c1", "look", "{}"),))
    async with replying([wants, "It is green."], quota_messages_a_day=1) as (lore, server):
        (*_, waits) = await gathered(lore, asks(), tools=[look])
        assert waits.finish_reason == "tool_calls"
        results = [roomlore.ToolResult("c1", "green")]
        reply = await lore.replies.reply(asks(), tools=[look], tool_results=results)
        assert reply.text == "It is green."
        assert (await lore.replies.reply(asks())).text == reply.text
        assert len(server.requests) == 2
        with pytest.raises(roomlore.QuotaExceeded):
            await lore.replies.reply(asks(message_id="again"), tools=[look], tool_results=results)
        assert "again" not in [one.id for one in await lore.messages.page("r")]


def test_the_command_line_shows_and_sets_limits(tmp_path):
    def run(*words):
        done = CliRunner().invoke(program, ["--db", f"{tmp_path}/a.db", "--tenant", "acme", *words])
        return done.output

    assert "acme has the limits of the settings" in run("tenants", "limit")
    told = run("tenants", "limit", "--messages-a-day", "100", "--requests-a-minute", "none")
    assert told == "Tenant acme has limits of its own: messages_a_day 100, requests_a_minute none.\n"
    shown = json.loads(run("tenants", "--json"))
    assert shown["acme"][0] == {"limit": "messages_a_day", "used": 0, "most": 100, **shown["acme"][0]}
    assert "100 *" in run("tenants")
    assert json.loads(run("tenants", "limit", "--messages-a-day", "usual", "--json")) == {"requests_a_minute": None}
    assert "whole number, `none` or `usual`" in run("tenants", "limit", "--messages-a-day", "many")


def test_the_command_line_changes_nothing_if_one_limit_is_wrong(tmp_path):
    def run(*words):
        return CliRunner().invoke(program, ["--db", f"{tmp_path}/a.db", "--tenant", "acme", "tenants", "limit", *words])

    run("--messages-a-day", "100")
    assert run("--messages-a-day", "usual", "--requests-a-minute=-5").exit_code == 1
    assert "messages_a_day 100." in run().output


async def test_a_server_of_one_connection_answers(http, monkeypatch):
    monkeypatch.setattr("roomlore_server.http.guard.MAX_CONNECTIONS", 1)
    assert (await http.get("/rooms")).status_code == 200
