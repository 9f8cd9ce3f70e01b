"""`make reference`: make the list of commands and the types of the synchronous client anew from the code."""

from docsite import commands, sync_stub

if __name__ == "__main__":
    sync_stub.STUB.write_text(sync_stub.stub(), encoding="utf-8")
    commands.DESCRIPTIONS.write_text(commands.descriptions(), encoding="utf-8")
