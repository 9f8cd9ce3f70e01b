"""`make reference`: regenerate docs/reference, the list of commands and the types of the synchronous client from the
code."""

from docsite import commands, sync_stub
from docsite.reference import REFERENCE, pages

if __name__ == "__main__":
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    sync_stub.STUB.write_text(sync_stub.stub(), encoding="utf-8")
    commands.DESCRIPTIONS.write_text(commands.descriptions(), encoding="utf-8")
