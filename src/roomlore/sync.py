"""The synchronous client. `sync.pyi`, which `make reference` makes from the async client, gives it its types."""

from roomlore.wiring.sync import SyncLore, connect_sync, open_sync

__all__ = ["SyncLore", "connect_sync", "open_sync"]
