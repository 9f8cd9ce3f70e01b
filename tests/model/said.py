"""Configuration of a real model for its tests, and how its answers are shown."""

import sys
from dataclasses import dataclass
from time import monotonic

import pytest

from roomlore import Settings
from roomlore.core.chat import SUMMARY_MODEL

PROVIDER, CHAT = "tested", "chat"


@dataclass(frozen=True)
class RealModel:
    """A model at a server that speaks OpenAI's protocol. `seconds`: the time it gets for one answer."""

    url: str
    model_id: str
    key_variable: str | None
    limit_field: str
    seconds: float

    @property
    def name(self) -> str:
        return f"{PROVIDER}/{self.model_id}"

    def settings(self, **more: object) -> Settings:
        """It for everything that roomlore asks of models."""
        entry = {"providers": [{"name": PROVIDER, "model_id": self.model_id}]}
        provider = {"base_url": self.url, "key_variable": self.key_variable, "limit_field": self.limit_field}
        return Settings(
            **{
                "models": {SUMMARY_MODEL: {**entry, "internal": True}, CHAT: entry},
                "providers": {PROVIDER: provider},
                "model_timeout_seconds": self.seconds,
                "summary_timeout_seconds": self.seconds,
                **more,
            }
        )


class Listener:
    def __init__(self, *, name: str, terminal: pytest.CaptureFixture[str], log: pytest.LogCaptureFixture) -> None:
        self._name, self._terminal, self._log = name, terminal, log
        self._since = monotonic()

    def tell(self, what: str, text: str | None) -> None:
        """Shows it, with the seconds since the last time."""
        seconds = monotonic() - self._since
        with self._terminal.disabled():
            sys.stdout.write(f"\n{self._name}, {seconds:.1f} s, {what}:\n    {text!r}\n")
        self._since = monotonic()

    def check_answers(self) -> None:
        """The server answered each time. What it answered may be of no use, but a server that is down tests nothing."""
        causes = {getattr(record, "cause", "") for record in self._log.records} - {"", "unusable"}
        assert not causes, f"The model gave no answer: {causes}. Is it up, and ROOMLORE_TEST_MODEL_SECONDS enough?"
