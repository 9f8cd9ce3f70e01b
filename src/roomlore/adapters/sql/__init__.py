"""The store on SQLite and PostgreSQL."""

from roomlore.adapters.sql.store import SqlStorage, connect

__all__ = ["SqlStorage", "connect"]
