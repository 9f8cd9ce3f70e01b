"""Counts the texts of `tokens.jsonl` anew with tiktoken: `python tests/golden/count_tokens.py`.

Each line has a text, how many times it is repeated where not once, and its tokens. To add a text, write a line with the
text alone and run this. tiktoken is no dependency of roomlore: install it where this runs. It downloads its
vocabularies, or takes them from the folder TIKTOKEN_CACHE_DIR, and refuses one with a wrong checksum.
"""

import json
from pathlib import Path
from typing import Any
from unicodedata import is_normalized

import tiktoken

GOLD = Path(__file__).parent / "tokens.jsonl"
ENCODINGS = ("cl100k_base", "o200k_base")


def counted(line: dict[str, Any]) -> dict[str, Any]:
    text = line["text"] * line.get("times", 1)
    texts = {name: line[name] for name in ("text", "times") if name in line}
    return texts | {name: len(tiktoken.get_encoding(name).encode(text, disallowed_special=())) for name in ENCODINGS}


def written(line: dict[str, Any]) -> str:
    """Escaped where an editor would not show, or not keep, what is there."""
    plain = line["text"].replace("\u3000", "").isprintable() and is_normalized("NFC", line["text"])
    return json.dumps(line, ensure_ascii=not plain)


def main() -> None:
    lines = [json.loads(line) for line in GOLD.read_text(encoding="utf-8").split("\n") if line]
    GOLD.write_text("".join(f"{written(counted(line))}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
