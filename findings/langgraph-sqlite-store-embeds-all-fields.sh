#!/bin/sh
# langgraph-checkpoint-sqlite 3.1.2 (langgraph-checkpoint 4.3.2), `SqliteStore(connection, index=...)`.
#
# `index={"fields": ["text"]}`, as the documentation of the class and `IndexConfig` have it, chooses what is embedded in
# InMemoryStore. SqliteStore does not read the key: it embeds the whole value as JSON. It reads a key `text_fields`.
# So a note that only one store was meant to keep beside the text is found by its meaning in the other.
#
# Seen (Linux, Python 3.11), the texts that the embedding is asked for:
#   InMemoryStore, fields:      ['tea at nine']
#   SqliteStore, fields:        ['{"note": "hidden", "text": "tea at nine"}']
#   SqliteStore, text_fields:   ['tea at nine']
#
# Exits with 1 if SqliteStore follows `fields`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q langgraph-checkpoint==4.3.2 langgraph-checkpoint-sqlite==3.1.2
"$folder/venv/bin/python" - <<'PYTHON'
import sqlite3
import sys
import types

# The texts are asked for before any vector is stored, so the extension for vectors is not needed here.
sys.modules["sqlite_vec"] = types.SimpleNamespace(load=lambda connection: None, serialize_float32=lambda vector: b"")

from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore


def asked(make, key):
    texts = []

    def embed(given):
        texts.extend(given)
        return [[0.0, 1.0] for _ in given]

    store = make({"dims": 2, "embed": embed, key: ["text"]})
    try:
        store.put(("room",), "m1", {"note": "hidden", "text": "tea at nine"})
    except sqlite3.Error:
        pass  # the table of vectors is not there
    return texts


def in_sqlite(index):
    store = SqliteStore(sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None), index=index)
    store.is_setup = True
    return store


in_memory = asked(lambda index: InMemoryStore(index=index), "fields")
documented, other = asked(in_sqlite, "fields"), asked(in_sqlite, "text_fields")
print("InMemoryStore, fields:    ", in_memory)
print("SqliteStore, fields:      ", documented)
print("SqliteStore, text_fields: ", other)
sys.exit(0 if in_memory == other == ["tea at nine"] and documented != in_memory else 1)
PYTHON
