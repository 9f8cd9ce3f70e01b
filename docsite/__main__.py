"""`make reference`: what the reference says of the code, made from it anew."""

from docsite.reference import REFERENCE, pages

if __name__ == "__main__":
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
