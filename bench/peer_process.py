"""Other stores, each a process of its own in an environment of its own, asked over standard input."""

import asyncio
import base64
import json
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import roomlore
from bench.took import Took
from roomlore.core.search.hits import Vectors

ROOT = Path(__file__).parents[1]
_LONGEST_LINE = 1 << 26


@dataclass(frozen=True, slots=True)
class Told:
    """A message, the text that other stores are told, "sender: text", and the vector of that."""

    message: roomlore.Message
    text: str
    vector: Vectors


@dataclass(frozen=True, slots=True)
class Kind:
    """A store. `module`: the one of `bench` that opens it. `environment`: a folder with the `packages`, "" for what is
    here. `includes`: what its times tell."""

    name: str
    module: str
    environment: str
    packages: tuple[str, ...]
    vectors: bool
    includes: str


_MEM0 = ("mem0ai==2.2.1", "qdrant-client==1.20.0")
_LANGGRAPH = ("langgraph-checkpoint==4.3.2", "langgraph-checkpoint-sqlite==3.1.2", "pysqlite3-binary==0.5.4.post2")
KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "mem0",
            "mem0_side",
            "mem0",
            _MEM0,
            True,
            "`add` without a model; the batch goes through its parts, as it has no call for one. On disk, each commit "
            "waits for it. A search compares the vectors of all rooms",
        ),
        Kind(
            "InMemoryStore",
            "langgraph_side",
            "langgraph",
            _LANGGRAPH,
            True,
            "LangGraph's, in memory, lost with the process. A search compares the vectors of the room",
        ),
        Kind(
            "SqliteStore",
            "langgraph_side",
            "langgraph",
            _LANGGRAPH,
            True,
            "LangGraph's, on disk, each commit waits for it. A search compares the vectors of the room",
        ),
        Kind(
            "SqliteStore alone",
            "langgraph_side",
            "langgraph",
            _LANGGRAPH,
            False,
            "the same without an index. A search lists the newest of the room, whatever was asked",
        ),
        Kind(
            "bm25s",
            "word_sides",
            "bm25s",
            ("bm25s==0.3.16",),
            False,
            "in memory, lost with the process. An add, and a batch, builds the index of the room again",
        ),
        Kind(
            "FTS5",
            "word_sides",
            "",
            (),
            False,
            "one table of SQLite, room and text, on disk with roomlore's settings. Nothing but the words is kept",
        ),
    )
}


class Peer:
    """A store that runs. Times are measured inside its process, around its own call."""

    def __init__(self, kind: Kind, process: Process) -> None:
        self.name = kind.name
        self.includes = kind.includes
        self.vectors = kind.vectors
        self._process = process

    async def add(self, message: Told) -> Took:
        return (await self._ask("add", [message]))[0]

    async def fill(self, messages: Sequence[Told]) -> Took:
        return (await self._ask("fill", messages))[0]

    async def search(self, room: str, query: str, vector: Vectors, limit: int) -> tuple[Took, list[str]]:
        query = query.strip()
        return await self._ask("search", (), {query: vector}, room=room, query=query, limit=limit)

    async def _ask(
        self, call: str, messages: Sequence[Told], vectors: Mapping[str, Vectors] | None = None, **rest: object
    ) -> tuple[Took, list[str]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        of_texts = {message.text: message.vector for message in messages} if vectors is None else vectors
        request: dict[str, Any] = {
            **rest,
            "call": call,
            "messages": [(message.message.room_id, message.message.id, message.text) for message in messages],
            "vectors": {text: _packed(vector) for text, vector in of_texts.items()} if self.vectors else {},
        }
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        await self._process.stdin.drain()
        line = await self._process.stdout.readline()
        if not line:
            raise SystemExit(f"The process of {self.name} ended; what it said is above.")
        answer = json.loads(line)
        return Took(*answer["took"]), answer["ids"]


def _packed(vector: Vectors) -> str:
    return base64.b64encode(vector.astype("float32").tobytes()).decode()


@asynccontextmanager
async def peer(kind: Kind, environments: Path, dimensions: int) -> AsyncIterator[Peer]:
    """A fresh, empty store."""
    python = environment(environments / kind.environment, kind.packages) if kind.environment else Path(sys.executable)
    with TemporaryDirectory() as folder:
        words = ("-m", "bench.peer_side", f"bench.{kind.module}", kind.name, folder, str(dimensions))
        process = await asyncio.create_subprocess_exec(
            python, *words, stdin=PIPE, stdout=PIPE, limit=_LONGEST_LINE, cwd=ROOT
        )
        try:
            yield Peer(kind, process)
        finally:
            with suppress(ProcessLookupError):  # it ended
                process.kill()
            await process.wait()


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """The Python of an environment, which is made where there is none."""
    folder = folder.absolute()
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    wanted = folder / "installed.txt"
    if not wanted.exists() or wanted.read_text() != "\n".join(packages):
        print(f"installing {', '.join(packages)} in {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = (str(python), "-m", "pip", "install", "--quiet", "numpy", *packages)
        subprocess.run(install, check=True, stdout=sys.stderr)
        wanted.write_text("\n".join(packages))
    return python
