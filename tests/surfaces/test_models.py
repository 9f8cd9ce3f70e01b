"""Models from the settings to every surface: what is shown, what a try says, and that no key is told."""

import json
import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roomlore
from roomlore.core.chat import KNOWN_PROVIDERS, SHIPPED, ChatRequest
from roomlore.core.errors import InvalidInput
from roomlore.settings import CONFIG_FILE, Settings, explain
from roomlore.surfaces.cli.app import app
from roomlore_testkit.model_server import Fails, serve_models

KEY = "sk-secret-0123456789"
MODELS = {
    "聊天": {"display_name": "Chat", "providers": [{"name": "near", "model_id": "m"}, {"name": "far", "model_id": "n"}]}
}
PROVIDERS = {
    "near": {"base_url": "http://127.0.0.1:9/v1", "key_variable": "NEAR_KEY"},
    "far": {"base_url": "http://127.0.0.1:9/v1"},
}
SHIPPED_KEYS = {
    KNOWN_PROVIDERS[offer["name"]].key_variable for model in SHIPPED.values() for offer in model["providers"]
}


def write(models: object, providers: object) -> None:
    section = {"memory": {"models": models, "providers": providers}}
    Path(CONFIG_FILE).write_text(json.dumps(section, ensure_ascii=False), encoding="utf-8")


def run(*arguments: str, code: int = 0):
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in (*SHIPPED_KEYS, "OPENAI_API_KEY", "NEAR_KEY"):
        monkeypatch.delenv(name, raising=False)


# Settings.


def test_models_from_the_file_and_from_the_environment(monkeypatch):
    write(MODELS, PROVIDERS)
    assert (Settings().models, Settings().source("models")) == (MODELS, CONFIG_FILE)
    monkeypatch.setenv("MEMORY_MODELS", json.dumps({"other": MODELS["聊天"]}))
    assert list(Settings().models) == ["other"]
    assert Settings().providers == PROVIDERS


@pytest.mark.parametrize("name", ["models", "providers"])
def test_what_is_no_json_in_the_environment_names_its_variable(monkeypatch, name):
    monkeypatch.setenv(f"MEMORY_{name.upper()}", f"{KEY}: x")
    with pytest.raises(InvalidInput, match=f"MEMORY_{name.upper()} must be JSON: a mapping such as") as refused:
        Settings()
    assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"models": {"a": {}}}, "model 'a' needs providers"),
        ({"providers": {"a": {"api_key": KEY}}}, "provider 'a' has no field 'api_key'"),
        ({"providers": KEY}, "providers is *** (from argument); it must be a mapping such as"),
        ({"models": [KEY]}, "models is *** (from argument); it must be a mapping such as"),
        ({"model_timeout_seconds": 0}, "it must be a number above 0 and up to 3600"),
    ],
)
def test_a_bad_value_stops_the_start_and_repeats_no_key(given, says):
    with pytest.raises(InvalidInput) as refused:
        Settings(**given)
    assert says in str(refused.value)
    assert KEY not in str(refused.value)


def test_keys_are_read_when_asked_for_and_shown_nowhere(monkeypatch):
    monkeypatch.setenv("NEAR_KEY", f" {KEY}\n")
    monkeypatch.setenv("BLANK_KEY", "  ")
    write(MODELS, PROVIDERS)
    settings = Settings()
    assert settings.environment_keys(["NEAR_KEY", "BLANK_KEY", "NO_KEY"]) == {"NEAR_KEY": KEY}
    assert KEY not in repr(settings) + str(explain(settings)) + settings.model_dump_json()
    assert KEY not in run("settings", "--json").stdout


# The command line.


def test_listing_models(monkeypatch):
    assert "No models to choose from" in run("models").stdout
    write(MODELS, PROVIDERS)
    monkeypatch.setenv("NEAR_KEY", KEY)
    lines = run("models").stdout.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["聊天", "Chat", "near", "m", "NEAR_KEY", "ready"],
        ["far", "n", "needs", "none", "ready"],
    ]
    every = run("models", "--internal").stdout
    assert "memory-summary-model" in every
    assert "not ready" in every
    assert KEY not in every
    assert not list(Path().glob("*.db"))


def test_listing_models_as_json():
    write(MODELS, PROVIDERS)
    (shown,) = json.loads(run("models", "--json").stdout)
    assert shown["providers"][0] == {
        "name": "near", "model_id": "m", "usable": False, "resting": False, "key_variable": "NEAR_KEY",
    }  # fmt: skip


def test_trying_models(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("NEAR_KEY", KEY)
    with serve_models(default="\x1b[31m准备好了") as near, serve_models(default=Fails(status=401)) as far:
        write(MODELS, {"near": {**PROVIDERS["near"], "base_url": near.url}, "far": {"base_url": far.url}})
        told = run("models", "test", "聊天")
        as_json = json.loads(run("models", "test", "聊天", "--json").stdout)
        assert near.requests[0].key == KEY
    assert "answered: \ufffd[31m准备好了" in told.stdout
    assert "HTTP 401" in told.stdout
    assert [(trial["text"], trial["error"][:12]) for trial in as_json] == [
        ("\x1b[31m准备好了", ""),
        ("", "The provider"),
    ]
    assert KEY not in told.output + caplog.text


def test_trying_models_of_which_one_has_no_answer():
    write(MODELS, PROVIDERS)
    told = " ".join(run("models", "test", code=1).stdout.split())
    for name in SHIPPED_KEYS:
        assert f"there is no key; set {name}." in told
    assert "cannot be reached" in told
    assert "no model 'nix'; there are 聊天" in run("models", "test", "nix", code=1).output


# HTTP, and the library without async.


@pytest.fixture
def settings(monkeypatch):
    monkeypatch.setenv("NEAR_KEY", KEY)
    return Settings(models=MODELS, providers=PROVIDERS)


async def test_models_over_http(http):
    answer = await http.get("/models")
    assert answer.status_code == 200
    (shown,) = answer.json()["models"]
    assert (shown["model_id"], shown["display_name"], shown["usable"]) == ("聊天", "Chat", True)
    assert [(p["name"], p["usable"], p["key_variable"]) for p in shown["providers"]] == [
        ("near", True, "NEAR_KEY"), ("far", True, None),
    ]  # fmt: skip
    assert KEY not in answer.text


async def test_models_over_http_need_a_key_that_may_read(lore, connect):
    _, secret = await lore.keys.create("writer", scopes=["write"])
    async with connect(key=secret) as writer:
        assert (await writer.get("/models")).status_code == 403


def test_models_without_async():
    with serve_models(default="同步 in step") as server:
        providers = {"near": {"base_url": server.url}, "far": {"base_url": server.url}}
        with roomlore.open_sync("sqlite://", settings=Settings(models=MODELS, providers=providers)) as lore:
            request = ChatRequest(messages=[{"role": "user", "content": "?"}])
            assert lore.models.complete("聊天", request).text == "同步 in step"
            assert "".join(piece.text for piece in lore.models.stream("聊天", request)) == "同步 in step"
            assert [one.model_id for one in lore.models.list_available_models()] == ["聊天"]
