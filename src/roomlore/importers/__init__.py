"""Importers: chat exports as the programs of the world write them, read as a stream of messages.

`open_import` finds the format and gives an `Import`: iterate it for `Parsed` and `Bad` items. It is synchronous; run it
in a thread. Memory does not grow with the size of the export.
"""

from roomlore.core.exports import Bad, Item, Parsed, Position
from roomlore.importers.formats import FORMATS, Format, Import, detect, open_import
from roomlore.importers.items import Options
from roomlore.importers.lark import lark_message
from roomlore.importers.source import Source

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
    "open_import",
]
