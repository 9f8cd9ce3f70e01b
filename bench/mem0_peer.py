"""mem0 as a process of its own, in an environment of its own, asked over standard input."""

import asyncio
import base64
import json
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roomlore.core.search.hits import Vectors

PINNED = ("mem0ai==2.2.1", "qdrant-client==1.20.0")
_LONGEST_LINE = 1 << 26


@dataclass(frozen=True, slots=True)
class Told:
    """A message as mem0 is told it: `text` is "sender: text"."""

    room: str
    id: str
    text: str
    vector: Vectors

    def request(self) -> dict[str, str]:
        return {"room": self.room, "id": self.id, "text": self.text, "vector": packed(self.vector)}


def packed(vector: Vectors) -> str:
    return base64.b64encode(vector.astype("float32").tobytes()).decode()


class Mem0Peer:
    """Times are seconds measured inside mem0's process, around its own call."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def about(self) -> dict[str, str]:
        """Versions by package."""
        return await self._ask(call="about")

    async def add(self, message: Told) -> float:
        return float((await self._ask(call="add", **message.request()))["seconds"])

    async def fill(self, messages: Sequence[Told]) -> None:
        """Stores many at once, faster than mem0's public calls can."""
        await self._ask(call="fill", messages=[message.request() for message in messages])

    async def search(self, room: str, query: str, vector: Vectors, limit: int) -> tuple[float, list[str]]:
        answer = await self._ask(call="search", room=room, query=query, vector=packed(vector), limit=limit)
        return answer["seconds"], answer["ids"]

    async def _ask(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        await self._process.stdin.drain()
        line = await self._process.stdout.readline()
        if not line:
            raise SystemExit("mem0's process ended; what it said is above.")
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def mem0(python: Path, dimensions: int) -> AsyncIterator[Mem0Peer]:
    """A fresh, empty mem0."""
    script = str(Path(__file__).with_name("mem0_side.py"))
    with TemporaryDirectory() as folder:
        command = (str(python), script, folder, str(dimensions))
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, limit=_LONGEST_LINE)
        try:
            yield Mem0Peer(process)
        finally:
            process.kill()
            await process.wait()


def environment(folder: Path) -> Path:
    """The Python of mem0's environment, which is made where there is none."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    wanted = folder / "installed.txt"
    if not wanted.exists() or wanted.read_text() != "\n".join(PINNED):
        print(f"installing {', '.join(PINNED)} in {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PINNED], check=True, stdout=sys.stderr)
        wanted.write_text("\n".join(PINNED))
    return python
