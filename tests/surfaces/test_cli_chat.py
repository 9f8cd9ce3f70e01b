"""`roomlore chat`: one question, a talk at a terminal, and what Ctrl-C stops."""

import json
import os
import pty
import select
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roomlore
from forked_process import ForkedProgram
from reply_rig import untimed
from roomlore.surfaces.cli.app import app
from roomlore_testkit.model_server import Fails, Says, serve_models

SECONDS = 60


@contextmanager
def models(monkeypatch, script=(), **more):
    with serve_models(script, **more) as model:
        named = {
            "chat": {"providers": [{"name": "here", "model_id": "m"}]},
            "memory-summary-model": {"internal": True, "providers": [{"name": "here", "model_id": "summary"}]},
        }
        monkeypatch.setenv("MEMORY_MODELS", json.dumps(named))
        monkeypatch.setenv("MEMORY_PROVIDERS", json.dumps({"here": {"base_url": model.url}}))
        monkeypatch.setenv("MEMORY_LOG_LEVEL", "error")
        yield model


def run(*arguments: str, code: int = 0, given: str | bytes | None = None):
    result = CliRunner().invoke(app, ["--db", "chat.db", "chat", *arguments], input=given)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def stored(room: str = "terminal") -> list[tuple[str, str]]:
    with roomlore.open_sync("chat.db", background=False) as lore:
        return [(one.sender_id, one.text) for one in lore.messages.page(room)]


# One question.


def test_one_question_is_answered_and_both_are_stored(monkeypatch):
    with models(monkeypatch, ["绿茶，\n当然。"]) as model:
        told = run("--room", "茶", "--as", "ann", "--name", "Ann", "--agent", "bot", "绿茶还是", "红茶？")
    assert told.stdout == "绿茶，\n当然。\n"
    assert stored("茶") == [("ann", "绿茶还是 红茶？"), ("bot", "绿茶，\n当然。")]
    assert "绿茶还是 红茶？" in model.requests[0].prompt


def test_the_second_question_is_asked_with_what_was_said_before(monkeypatch):
    with models(monkeypatch, default="Green.") as model:
        run("Green or black?")
        run("--system", "You are a teapot.", "Why green?")
    assert "Green or black?" in model.requests[1].prompt
    assert "You are a teapot." in model.requests[1].prompt


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_a_question_from_standard_input(monkeypatch, arguments):
    with models(monkeypatch, ["Green."]):
        assert run(*arguments, given="Green\nor black?\n").stdout == "Green.\n"
    assert stored()[0] == ("you", "Green\nor black?")


def test_events_as_json_and_texts_as_they_are(monkeypatch):
    with models(monkeypatch, [Says(pieces=["绿\x1b[31m", "茶"])]):
        events = [json.loads(line) for line in run("--json", "?").stdout.splitlines()]
    assert [event["event"] for event in events] == ["start", "text", "text", "done"]
    assert (events[1]["text"], events[-1]["text"]) == ("绿\x1b[31m", "绿\x1b[31m茶")
    assert events[-1]["usage"] == {"input_tokens": 7, "output_tokens": 3}


def test_an_answer_cannot_steer_the_terminal(monkeypatch):
    with models(monkeypatch, ["[red]a\x1b[2J\u202eb\x07\tc"]):
        assert run("?").stdout == "[red]a\ufffd[2J\ufffdb\ufffd c\n"


def test_what_goes_wrong_is_one_sentence(monkeypatch):
    with models(monkeypatch, [Fails(status=401)]):
        for arguments, says in (
            (("?",), "HTTP 401"),
            (("--model", "nix", "?"), "There is no model 'nix'; there are chat."),
            (("  ",), "There is no question"),
        ):
            told = run(*arguments, code=1)
            assert told.stdout == ""
            assert told.stderr.startswith("roomlore: ")
            assert says in told.stderr
            assert told.stderr.count("\n") == 1
        assert "There is no question" in run(code=1, given="\n").stderr
        assert "is not UTF-8: byte 0" in run(code=1, given=b"\xff").stderr
    monkeypatch.delenv("MEMORY_MODELS")
    assert run("?", code=1).stderr == (
        "roomlore: There is no model to reply; name one under `models:` in the section `memory:` of roomlore.yaml, or "
        "in MEMORY_MODELS.\n"
    )


# A talk at a terminal.


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._end, theirs = pty.openpty()
        program = Path(__file__).parents[1] / "session_leader.py"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TERM", "xterm")
            patch.setenv("COLUMNS", "200")
            self._process = ForkedProgram(program, os.ttyname(theirs), "--db", "chat.db", "chat", *arguments)
        self.told = ""
        while not self.told:
            assert self._hear(SECONDS)
        os.close(theirs)  # from now on it ends with the program

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def until(self, words: str) -> str:
        """Return the output up to these words, from where the last call ended."""
        ends = time.monotonic() + SECONDS
        while words not in self.told:
            assert time.monotonic() < ends, self.told
            assert self._hear(0.1), f"the program has ended: {self.told}"
        before, _, self.told = self.told.partition(words)
        return before

    def status(self, *, after: str = "") -> int:
        """The exit status, once these keys were pressed, often enough to be noticed."""
        ends = time.monotonic() + SECONDS
        while (status := self._process.wait(0)) is None:
            assert time.monotonic() < ends, self.told
            with suppress(OSError):
                self.type(after)
            self._hear(0.5)
        os.close(self._end)
        self._process.close()
        return status

    def _hear(self, seconds: float) -> bool:
        """Takes what is shown; False where nothing will be any more."""
        try:
            if select.select([self._end], [], [], seconds)[0]:
                self.told += os.read(self._end, 65_536).decode(errors="replace")
        except OSError:
            return False
        return True


def test_a_talk_goes_on_until_somebody_has_enough(monkeypatch):
    def answer(asked):
        if asked.model == "summary":
            return "Ann likes green tea best."
        last = untimed(asked.body["messages"][-1]["content"]).splitlines()[-1]
        if "for ever" in last:
            return Says(pieces=["word "] * 2000, between=0.02)
        return Fails(status=400) if "fail" in last else f"<{last}>"

    monkeypatch.setenv("MEMORY_EXTRACT_EVERY", "1")
    with models(monkeypatch, answer) as model:
        talk = Terminal("--name", "Ann")
        talk.until("Ann> ")
        talk.type("绿茶\n")
        talk.until("<绿茶>\r\n")
        assert "tokens" in talk.until("Ann> ")
        talk.type("talk for ever\n")
        talk.until("word word word")
        talk.type("\x03")
        talk.until("(stopped)")
        talk.until("Ann> ")
        talk.type("please fail\n")
        talk.until("roomlore: The provider here answers with HTTP 400")
        talk.until("Ann> ")
        talk.type("/context\n")
        assert "please fail" in talk.until("messages")
        talk.until("Ann> ")
        talk.type("/help\n")
        talk.until("/quit or Ctrl-D ends")
        talk.type("/contxt\n")
        talk.until("There is no /contxt. ")
        talk.until("/quit or Ctrl-D ends")
        ends = time.monotonic() + SECONDS
        while not any(asked.model == "summary" for asked in model.requests):
            assert time.monotonic() < ends, "nothing was extracted while the talk went on"
            time.sleep(0.05)
        talk.type("thanks\n")
        talk.until("<thanks>")
        talk.until("Ann> ")
        talk.type("never sent")
        talk.until("never sent")
        assert talk.status(after="\x15\x04") == 0
        forever = next(asked for asked in model.requests if "for ever" in asked.prompt)
        assert forever.answered_at is None
    texts = [text for _, text in stored()]
    assert [texts[0], texts[1], texts[2]] == ["绿茶", "<绿茶>", "talk for ever"]
    assert texts[3].startswith("word word")
    assert texts[4:] == ["please fail", "thanks", "<thanks>"]


def test_ctrl_c_on_the_one_question_ends_the_program_and_keeps_what_was_said(monkeypatch):
    with models(monkeypatch, [Says(pieces=["word "] * 2000, between=0.02)]) as model:
        talk = Terminal("talk", "for", "ever")
        talk.until("word word word")
        talk.type("\x03")
        talk.until("(stopped)")
        assert talk.status() == 130
        assert model.requests[0].answered_at is None
    assert stored()[1][1].startswith("word word word")
