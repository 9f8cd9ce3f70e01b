"""PgBouncer in transaction mode before a PostgreSQL server."""

import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path
from tempfile import mkdtemp

from sqlalchemy import make_url

SESSIONS = 5

_INI = """
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = {sessions}
server_login_retry = 0.1
"""


BINARY = shutil.which("pgbouncer", path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin")))
"""None if it is not installed. Debian installs it where only root looks."""


class PgBouncer:
    """Listens at `url` from its making on. Fewer sessions than clients, so that clients share them."""

    def __init__(self, server: str) -> None:
        if BINARY is None:
            raise RuntimeError("PgBouncer is not installed: `make system-packages` installs it.")
        self._folder = Path(mkdtemp(prefix="roomlore-pgbouncer-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        its = make_url(server)
        host = str(its.host or its.query["host"])
        settings = {"host": host, "port": its.port or 5432, "user": its.username, "password": its.password}
        said = " ".join(f"{name}={value}" for name, value in settings.items() if value)
        ini = self._folder / "pgbouncer.ini"
        ini.write_text(_INI.format(own=port, server=said, sessions=SESSIONS), encoding="utf-8")
        self._folder.chmod(0o755)
        self._process = subprocess.Popen([BINARY, "--quiet", *_not_as_root(host), str(ini)], stderr=subprocess.DEVNULL)
        self.url = str(
            its.set(host="127.0.0.1", port=port, query={}, password="").render_as_string(hide_password=False)
        )
        deadline = time.monotonic() + 60
        while not _answers(port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{BINARY} did not start; run it by hand on {ini} to see why.")
            time.sleep(0.01)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _not_as_root(host: str) -> list[str]:
    """PgBouncer does not run as root: it runs as whoever may open PostgreSQL's socket."""
    if os.geteuid():
        return []
    owner = Path(host).stat().st_uid if host.startswith("/") else pwd.getpwnam("nobody").pw_uid
    return ["--user", pwd.getpwuid(owner).pw_name]


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
