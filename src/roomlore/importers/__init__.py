"""Importers: chat exports of many programs, read as a stream of messages.

`open_import` detects the format and returns an `Import`: iterate it for `Parsed` and `Bad` items. It is synchronous;
run it in a thread. Memory does not grow with the size of the export.
"""

from roomlore.core.records import Bad, Item, Parsed, Position
from roomlore.importers.export_files import Options, Source
from roomlore.importers.formats import FORMATS, Format, Import, detect, open_import
from roomlore.importers.lark import lark_message
from roomlore.importers.onebot import onebot_message, onebot_recall

__all__ = [
    "FORMATS",
    "Bad",
    "Format",
    "Import",
    "Item",
    "Options",
    "Parsed",
    "Position",
    "Source",
    "detect",
    "lark_message",
    "onebot_message",
    "onebot_recall",
    "open_import",
]
