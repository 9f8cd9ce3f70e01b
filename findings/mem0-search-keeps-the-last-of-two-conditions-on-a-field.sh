#!/bin/sh
# mem0ai 2.2.1 with its usual store (qdrant-client 1.20.0), `Memory.search` and `Memory.get_all` with `AND`.
#
# `AND` combines conditions. Two of them on one field, such as two words that a title must contain, are joined by
# `search` in a dict by the field's name, so the last one takes the place of the first; `get_all` passes them on and has
# both. The same filter finds more in `search`, without a warning. Two bounds (`gte` and `lt`) do hold together.
#
# Seen (Linux, Python 3.11), filters={"user_id": "ann", "AND": [{"title": {"contains": "green"}},
# {"title": {"contains": "tea"}}]}:
#   get_all: ['a green tea']
#   search:  ['a black tea', 'a green tea']
#
# Exits with 1 if both find the same.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mem0ai==2.2.1 qdrant-client==1.20.0
cd "$folder"
MEM0_TELEMETRY=False MEM0_DIR="$folder/mem0" OPENAI_API_KEY=never-used "$folder/venv/bin/python" - <<'PYTHON'
import logging
import sys

from mem0 import Memory

logging.disable(logging.CRITICAL)


class Letters:
    """In the place of an embedder: how often each letter occurs."""

    def embed(self, text, memory_action=None):
        return [0.01 + text.count(chr(97 + number)) for number in range(26)]

    def embed_batch(self, texts, memory_action="add"):
        return [self.embed(text) for text in texts]


store = {"collection_name": "notes", "path": "qdrant", "embedding_model_dims": 26}
memory = Memory.from_config(
    {"vector_store": {"provider": "qdrant", "config": store}, "history_db_path": "history.db"}
)
memory.embedding_model = Letters()
for title in ("a green tea", "a black tea", "a green hat"):
    memory.add(title, user_id="ann", metadata={"title": title}, infer=False)


def filters():
    both = [{"title": {"contains": "green"}}, {"title": {"contains": "tea"}}]
    return {"user_id": "ann", "AND": both}


listed = sorted(item["memory"] for item in memory.get_all(filters=filters())["results"])
searched = sorted(item["memory"] for item in memory.search("tea", filters=filters(), threshold=0)["results"])
memory.vector_store.client.close()
print("get_all:", listed)
print("search: ", searched)
sys.exit(0 if listed == ["a green tea"] and searched == ["a black tea", "a green tea"] else 1)
PYTHON
