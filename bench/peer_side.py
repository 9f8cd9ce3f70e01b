"""Runs inside the environment of another store and does what JSON lines on standard input say, one answer a line.

Only the store's own calls are timed, here, in its own process: neither the talk between the processes nor any embedding
counts. Vectors come with the request, and the store's embedder looks them up.
"""

import base64
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.took import spent

Vectors = dict[str, list[float]]
"""Those of the request, by text."""


@dataclass(frozen=True, slots=True)
class Told:
    room: str
    id: str
    text: str


class Store(Protocol):
    """What is compared."""

    def add(self, message: Told) -> None: ...

    def fill(self, messages: Sequence[Told]) -> None:
        """Store many messages of one room."""

    def search(self, room: str, query: str, limit: int) -> Sequence[str]:
        """Return the ids of the messages found, best first."""


Opening = Callable[[Path, int, Vectors], Store]
"""Opens an empty store in a folder, with vectors of that length."""


def answered(store: Store, vectors: Vectors, request: Mapping[str, Any]) -> dict[str, Any]:
    vectors.clear()
    vectors.update((text, _vector(packed)) for text, packed in request["vectors"].items())
    found: list[str] = []
    messages = [Told(*message) for message in request["messages"]]
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: store.add(messages[0]),
        "fill": partial(store.fill, messages),
        "search": lambda: found.extend(store.search(request["room"], request["query"], request["limit"])),
    }
    return {"took": spent(calls[request["call"]]), "ids": found}


def _vector(packed: str) -> list[float]:
    made: list[float] = np.frombuffer(base64.b64decode(packed), np.float32).tolist()
    return made


def main() -> None:
    """Arguments: the module that has the store, its name there, an empty folder, and the length of the vectors. What
    the store prints goes to standard error."""
    module, name, folder, dimensions = sys.argv[1:]
    answers, sys.stdout = sys.stdout, sys.stderr
    logging.disable(logging.WARNING)
    vectors: Vectors = {}
    stores: Mapping[str, Opening] = import_module(module).STORES
    store = stores[name](Path(folder), int(dimensions), vectors)
    for line in sys.stdin:
        answers.write(json.dumps(answered(store, vectors, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
