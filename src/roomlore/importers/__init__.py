"""Importers: chat exports of many programs, read as a stream of messages.

`open_import` detects the format and returns an `Import`: iterate it for `Parsed` and `Bad` items. `find_exports` finds
the exports in a folder or zip. Both are synchronous; run them in a thread. Memory does not grow with the size of the
export.
"""

from roomlore.core.records import Bad, Item, LeftOut, Parsed, Position
from roomlore.importers.apart import keep_apart
from roomlore.importers.export_files import Options, Source
from roomlore.importers.finding import find, find_exports
from roomlore.importers.formats import FORMATS, Format
from roomlore.importers.lark import lark_message
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
]
