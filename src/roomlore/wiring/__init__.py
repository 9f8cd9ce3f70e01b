"""From settings to adapters to services: the only package that knows all three."""

from roomlore.wiring.backup import restore_backup, write_backup
from roomlore.wiring.doctor import diagnose, extras, is_missing
from roomlore.wiring.lore import Lore, connect_lore, open_for_command, open_lore
from roomlore.wiring.models import make_tokens, open_models
from roomlore.wiring.resources import OwnBackends

__all__ = [
    "Lore",
    "OwnBackends",
    "connect_lore",
    "diagnose",
    "extras",
    "is_missing",
    "make_tokens",
    "open_for_command",
    "open_lore",
    "open_models",
    "restore_backup",
    "write_backup",
]
