"""The model that the processes of `crash` ask: it lives outside of them and remembers every request."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, Protocol

from bench.crash_items import answer_pieces, last_asked, mark_of, memory
from roomlore_testkit.model_server import Asked, Says

REPLIES = "crash-replies"
MEMORIES = "crash-memories"
_LONGEST_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Request:
    """`life`: which process asked. `number`: from 1, as they were read here. `label`: of the question that is replied
    to, or the mark of the answer that the messages to be remembered end with, or what tells the prompt of an evolution
    or of a merge of memories from all others; '' where that cannot be told. Times are of `time.monotonic`;
    `answered_at`: when the last byte of the answer was sent, None where it was not."""

    life: int
    number: int
    kind: Literal["reply", "memory", "fold", "evolution"]
    label: str
    at: float = 0.0
    asked: Asked | None = None

    @property
    def answered_at(self) -> float | None:
        return self.asked.answered_at if self.asked else None

    @property
    def key(self) -> tuple[str, str]:
        """Return what must be paid for once."""
        return self.kind, self.label


class Requests(Protocol):
    """A script for `serve_models` that remembers what it was asked."""

    @property
    def requests(self) -> Sequence[Request]: ...

    def __call__(self, request: Asked) -> Says: ...


def url_of(url: str, life: int) -> str:
    """The base URL that this process asks: what it sent may be read here after its end, and is known as its own."""
    return f"{url}/{life}"


def life_of(request: Asked) -> int:
    """Return the process that asked."""
    return int(request.path.removesuffix("/chat/completions").rpartition("/")[2])


class ScriptedModel:
    """A script for `serve_models`: whole answers, after a time by chance."""

    def __init__(self, seed: int) -> None:
        self.requests: list[Request] = []
        self._chance = random.Random(f"model {seed}")

    def __call__(self, request: Asked) -> Says:
        number = len(self.requests) + 1
        life = life_of(request)
        after = self._chance.uniform(0.0, _LONGEST_SECONDS)
        if request.model == MEMORIES:
            mark = mark_of(request.prompt)
            if mark:
                self.requests.append(Request(life, number, "memory", mark, time.monotonic(), request))
            else:  # short memories are merged, once a room has many
                notes = sha256(request.prompt.encode()).hexdigest()[:8]
                self.requests.append(Request(life, number, "fold", notes, time.monotonic(), request))
            return Says(text=memory(mark, number), after=after)
        label = last_asked(str(request.body["messages"][-1].get("content")))
        self.requests.append(Request(life, number, "reply", label, time.monotonic(), request))
        pieces = answer_pieces(label, number)
        return Says(text="".join(pieces), pieces=pieces, after=after / 2, between=after / 2 / len(pieces))
