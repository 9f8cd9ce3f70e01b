"""`make reference`: regenerate docs/reference and the types of the synchronous client from the code."""

from docsite import sync_stub
from docsite.reference import REFERENCE, pages

if __name__ == "__main__":
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    sync_stub.STUB.write_text(sync_stub.stub(), encoding="utf-8")
