"""The command `roomlore` for shells of a test: each call is a process of its own, forked from one that has imported it.

Importing takes longer than most commands, and the documentation has hundreds of them. What a command loads when it
first needs it, such as the words of Chinese, is loaded before the fork too. Called by another name, the program runs
`main` of the module of that name, which lies beside this one.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

_CALL = """#!{python} -IS
import json, os, socket, sys, time

STAYS, words = {stays!r}, sys.argv[1:]


def command():
    left = iter(words)
    for word in left:
        if word in ("--db", "--tenant", "--config"):
            next(left, "")
        elif not word.startswith("-"):
            return word


stays = command() in ("serve", "worker") or (command() == "mcp" and "--http" in words)
stays = stays and not {{"--help", "-h"}} & set(words)
log = os.path.join(STAYS, f"{{time.monotonic_ns()}}.log")
streams = [0, 1, 2]
if stays:
    out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    streams = [os.open(os.devnull, os.O_RDONLY), out, out]
asked = {{"program": os.path.basename(sys.argv[0]), "words": words}}
body = json.dumps({{**asked, "folder": os.getcwd(), "environment": dict(os.environ)}}).encode()
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({socket!r})
    socket.send_fds(connection, [len(body).to_bytes(4, "big")], streams)
    connection.sendall(body)
    answers = connection.makefile("rb")
    pid = int(answers.readline())
    if stays:
        connection.settimeout(0.02)
        for _ in range(9000):
            try:
                connection.recv(1, socket.MSG_PEEK)
                break
            except TimeoutError:
                if " with Ctrl-C." in (said := open(log, encoding="utf-8").read()):
                    with open(os.path.join(STAYS, "pids"), "a") as pids:
                        print(pid, log, file=pids)
                    print(said, end="")
                    sys.exit(0)
        print(open(log, encoding="utf-8").read(), file=sys.stderr)
        sys.exit(70)
    sys.exit(int(answers.readline() or 70))
"""


class Commands:
    """Answers calls from `start` on: a process that has imported the command line listens at a socket."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="roomlore-command-"))
        self._socket = self._folder / "socket"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Waits until it listens."""
        environment = {"PATH": os.environ["PATH"], "PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__, str(self._socket)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"listening\n":
            raise RuntimeError(f"{' '.join(command)} did not start; run it by hand to see why.")

    def program(self, stays: Path) -> str:
        """A program to put first on a PATH. Servers go on when it ends; their logs and `pids` are in the folder."""
        return _CALL.format(python=sys.executable, socket=str(self._socket), stays=str(stays))

    def close(self) -> None:
        """Ends every process that a call has left."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
        self._socket.unlink(missing_ok=True)
        self._folder.rmdir()


def _listen(path: str) -> None:
    """In the process that waits, until its parent is gone. What it forks leaves this function by `SystemExit`."""
    sys.path.append(str(Path(__file__).parents[1]))
    import forked_warm  # noqa: F401 - what commands and servers need, once for all
    from roomlore.surfaces.cli import main

    gc.freeze()
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    while select.select([server, 0], [], [])[0] == [server]:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _answer(connection, main)
        connection.close()


def _answer(connection: socket.socket, main: Any) -> None:
    size, streams, _, _ = socket.recv_fds(connection, 4, 3)
    told = json.loads(connection.makefile("rb").read(int.from_bytes(size, "big")))
    pid = os.fork()
    if pid == 0:
        connection.close()
        _run(told, streams, main)
    try:
        for stream in streams:
            os.close(stream)
        connection.sendall(f"{pid}\n".encode())
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(f"{status if status >= 0 else 128 - status}\n".encode())
    finally:
        os._exit(0)


def _run(told: dict[str, Any], streams: list[int], main: Any) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, "w" if number else "r") for number in range(3))
    os.chdir(told["folder"])
    os.environ.clear()
    os.environ.update(told["environment"])
    sys.argv = [told["program"], *told["words"]]
    if told["program"] != "roomlore":
        main = importlib.import_module(told["program"]).main
    main()
    sys.exit()


if __name__ == "__main__":
    _listen(sys.argv[1])
