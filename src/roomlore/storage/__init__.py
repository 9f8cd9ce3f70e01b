"""The store on SQLite and PostgreSQL. SQLAlchemy is loaded when a part of it is first named."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roomlore.storage.opening import connect, is_in_memory
    from roomlore.storage.store import Storage, UnitOfWork

__all__ = ["Storage", "UnitOfWork", "connect", "is_in_memory"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from roomlore.storage import opening, store

    return getattr(store if name[0].isupper() else opening, name)
