"""Importers: chat exports of many programs, read as a stream of messages.

`open_import` detects the format and returns an `Import`: iterate it for `Parsed` and `Bad` items. `find_exports` finds
the exports in a folder or zip. Both are synchronous; run them in a thread. Memory does not grow with the size of the
export. A name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roomlore.core.records import Bad, Item, LeftOut, Parsed, Position
    from roomlore.importers.apart import keep_apart
    from roomlore.importers.export_files import Options, Source
    from roomlore.importers.finding import find, find_exports
    from roomlore.importers.formats import FORMATS, Format
    from roomlore.importers.lark import lark_message
    from roomlore.importers.memories import read_memories
    from roomlore.importers.onebot import onebot_message, onebot_recall
    from roomlore.importers.opening import Import, detect, open_import
    from roomlore.ports.exports import ExportFile, Found

__all__ = [
    "FORMATS",
    "Bad",
    "ExportFile",
    "Format",
    "Found",
    "Import",
    "Item",
    "LeftOut",
    "Options",
    "Parsed",
    "Position",
    "Source",
    "detect",
    "find",
    "find_exports",
    "keep_apart",
    "lark_message",
    "onebot_message",
    "onebot_recall",
    "open_import",
    "read_memories",
]

_MODULES = {
    "roomlore.core.records": "Bad Item LeftOut Parsed Position",
    "roomlore.importers.apart": "keep_apart",
    "roomlore.importers.export_files": "Options Source",
    "roomlore.importers.finding": "find find_exports",
    "roomlore.importers.formats": "FORMATS Format",
    "roomlore.importers.lark": "lark_message",
    "roomlore.importers.memories": "read_memories",
    "roomlore.importers.onebot": "onebot_message onebot_recall",
    "roomlore.importers.opening": "Import detect open_import",
    "roomlore.ports.exports": "ExportFile Found",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
