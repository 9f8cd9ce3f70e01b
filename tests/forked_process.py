"""Python programs as processes of their own, forked from one that has roomlore imported.

Importing it takes each process two seconds, and the tests of `tests/faults` start more than a hundred. What they start
here is killed, signalled and waited for as a process that `asyncio.create_subprocess_exec` or `subprocess.Popen` makes.
"""

import asyncio
import os
import runpy
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess
from typing import Self

import pytest

_WARM = "forked_warm"
_BEGINNING = threading.Lock()
_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload([_WARM, "bench.crash_warm"])


class ForkedProcess:
    """A process whose standard input and output are pipes."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    @classmethod
    async def start(
        cls,
        program: Path | str,
        *arguments: str,
        environment: Mapping[str, str] = os.environ,
        folder: str = ".",
        error: int = 2,
    ) -> Self:
        """Run the file or the module `program` as `__main__`, with these arguments. `error`: the number of the file to
        which its standard error goes; without one, it is that of the test."""
        self = cls()
        made = asyncio.to_thread(_started, [str(program), *arguments], environment, folder, error)
        self._process, ours_in, ours_out = await made
        loop = asyncio.get_running_loop()
        self.stdout = asyncio.StreamReader(limit=1 << 20)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self.stdout), _file(ours_out, "rb"))
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, _file(ours_in, "wb"))
        self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    async def wait(self) -> int:
        await asyncio.to_thread(self._process.join)
        self.stdin.close()
        return self._process.exitcode

    async def communicate(self, given: bytes = b"") -> tuple[bytes, None]:
        """Write what is given, close the standard input, and return all that it prints until it ends."""
        if not self.stdin.is_closing():
            self.stdin.write(given)
            self.stdin.close()
        printed = await self.stdout.read()
        await self.wait()
        return printed, None


class ForkedProgram:
    """A process for a test that has no loop. Its standard input and output are pipes; `error` is the number of the file
    to which its standard error goes."""

    def __init__(self, program: Path | str, *arguments: str, error: int = 2) -> None:
        words = [str(program), *arguments]
        self._process, stdin, stdout = _started(words, os.environ, ".", error)
        self.stdin, self.stdout = _file(stdin, "wb"), _file(stdout, "rb")
        self.pid = self._process.pid

    def send_signal(self, number: int) -> None:
        if self._process.exitcode is None:
            os.kill(self._process.pid, number)

    def wait(self, seconds: float) -> int | None:
        """Return how it ended; None if it has not."""
        self._process.join(seconds)
        return self._process.exitcode

    def close(self) -> None:
        self.send_signal(signal.SIGKILL)
        self._process.join()
        self.stdin.close()
        self.stdout.close()


def run_forked(
    program: Path | str, *arguments: str, environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Run the program to its end, with nothing on its standard input. Return its status and what it printed."""
    words = [str(program), *arguments]
    with tempfile.TemporaryFile() as error:
        process, stdin, stdout = _started(
            words, os.environ if environment is None else environment, ".", error.fileno()
        )
        stdin.close()
        with _file(stdout, "rb") as printed:
            told = printed.read()
        process.join()
        status = process.exitcode
        process.close()
        error.seek(0)
        return CompletedProcess(words, status, told.decode(), error.read().decode())


def _started(
    words: list[str], environment: Mapping[str, str], folder: str, error: int
) -> tuple[BaseProcess, Connection, Connection]:
    """Return the process, and our ends of its standard input and output."""
    theirs_in, ours_in = _FORKS.Pipe(duplex=False)
    ours_out, theirs_out = _FORKS.Pipe(duplex=False)
    told = Connection(os.dup(error), readable=False)
    where = dict(environment), _absolute(folder)
    process = _FORKS.Process(target=_run, args=(words, *where, theirs_in, theirs_out, told))
    _start(process)
    for end in (theirs_in, theirs_out, told):
        end.close()
    return process, ours_in, ours_out


def _start(process: BaseProcess) -> None:
    """The server of forks imports from PYTHONPATH alone, and passes over in silence what it cannot import."""
    begin()
    process.start()


def begin() -> None:
    """Start the server of forks, which all in this process share, if it does not run. One thread at a time: another one
    would take the PYTHONPATH of the first for that of the process, and leave it behind."""
    with _BEGINNING, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()


def _absolute(folder: str) -> str:
    return str(Path(folder).absolute())


def _file(end: Connection, mode: str):
    file = os.fdopen(os.dup(end.fileno()), mode, buffering=0)
    end.close()
    return file


def _run(
    words: list[str],
    environment: dict[str, str],
    folder: str,
    given: Connection,
    printed: Connection,
    error: Connection,
) -> None:
    for number, end in enumerate((given, printed, error)):
        os.dup2(end.fileno(), number)
        end.close()
    # Those at hand are of the server of forks: /dev/null, or a file where this is a pipe.
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, 1, closefd=False) for n, mode in enumerate("rww"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    assert _WARM in sys.modules
    sys.argv = words
    if words[0].endswith(".py"):
        sys.path.insert(0, str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")
    else:
        runpy.run_module(words[0], run_name="__main__")
