"""Records what mem0 answers to the calls of `mem0_calls`: `python tests/golden/record_mem0.py > tests/golden/mem0.json`
in an environment with mem0ai 2.2.1. Vectors are made of letters, and the model is a function; nothing is asked of a
network.
"""

import json
import logging
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

DIMENSIONS = 64


class Letters:
    """In the place of an embedder: how often each letter occurs."""

    def embed(self, text, memory_action=None):
        vector = [0.01] * DIMENSIONS
        for letter in text:
            vector[ord(letter) % DIMENSIONS] += 1.0
        return vector

    def embed_batch(self, texts, memory_action="add"):
        return [self.embed(text) for text in texts]


class Scripted:
    """In the place of a model: always the same fact."""

    def __init__(self, fact):
        self.fact = fact

    def generate_response(self, messages, **_):
        return json.dumps({"memory": [{"id": "0", "text": self.fact}]})


def main():
    folder = tempfile.mkdtemp()
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder, "OPENAI_API_KEY": "never used"}
    logging.disable(logging.CRITICAL)
    said, sys.stdout = sys.stdout, sys.stderr
    from mem0 import Memory
    from mem0_calls import INFERRED, play, signatures

    store = {"collection_name": "mem0", "path": str(Path(folder) / "qdrant"), "embedding_model_dims": DIMENSIONS}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(Path(folder) / "history.db"),
        }
    )
    memory.embedding_model, memory.llm = Letters(), Scripted(INFERRED)
    recorded = {"version": version("mem0ai"), "signatures": signatures(Memory), "answers": play(memory)}
    said.write(json.dumps(recorded, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
