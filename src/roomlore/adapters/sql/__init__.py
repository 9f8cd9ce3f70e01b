"""The store on SQLite and PostgreSQL. SQLAlchemy is loaded when the store is first named."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roomlore.adapters.sql.store import SqlStorage, connect, is_in_memory

__all__ = ["SqlStorage", "connect", "is_in_memory"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from roomlore.adapters.sql import store

    return getattr(store, name)
