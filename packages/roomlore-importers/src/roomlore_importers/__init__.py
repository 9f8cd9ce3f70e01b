"""Importers: chat exports of many programs, read as a stream of messages.

`open_import` detects the format and returns an `Import`: iterate it for `Parsed` and `Bad` items. `find_exports` finds
the exports in a folder or zip. Both are synchronous; run them in a thread. Memory does not grow with the size of the
export. A name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roomlore.core.records import Bad, Item, LeftOut, Parsed, Position
    from roomlore.ports.exports import ExportFile, ExportListing
    from roomlore_importers.apart import keep_apart
    from roomlore_importers.discord import discord_message
    from roomlore_importers.export_files import Options, Source
    from roomlore_importers.finding import find, find_exports
    from roomlore_importers.formats import FORMATS, Format
    from roomlore_importers.lark import lark_message
    from roomlore_importers.memories import read_memories
    from roomlore_importers.onebot import onebot_message, onebot_recall
    from roomlore_importers.opening import Import, detect, open_import
    from roomlore_importers.slack import slack_message
    from roomlore_importers.telegram import telegram_message

__all__ = [
    "FORMATS",
    "Bad",
    "ExportFile",
    "ExportListing",
    "Format",
    "Import",
    "Item",
    "LeftOut",
    "Options",
    "Parsed",
    "Position",
    "Source",
    "detect",
    "discord_message",
    "find",
    "find_exports",
    "keep_apart",
    "lark_message",
    "onebot_message",
    "onebot_recall",
    "open_import",
    "read_memories",
    "slack_message",
    "telegram_message",
]

_MODULES = {
    "roomlore.core.records": "Bad Item LeftOut Parsed Position",
    "roomlore_importers.apart": "keep_apart",
    "roomlore_importers.discord": "discord_message",
    "roomlore_importers.export_files": "Options Source",
    "roomlore_importers.finding": "find find_exports",
    "roomlore_importers.formats": "FORMATS Format",
    "roomlore_importers.lark": "lark_message",
    "roomlore_importers.memories": "read_memories",
    "roomlore_importers.onebot": "onebot_message onebot_recall",
    "roomlore_importers.opening": "Import detect open_import",
    "roomlore_importers.slack": "slack_message",
    "roomlore_importers.telegram": "telegram_message",
    "roomlore.ports.exports": "ExportFile ExportListing",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
