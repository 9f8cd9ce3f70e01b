"""A page's program in this process, as it stands, for what can be told from inside alone: when it ends, and how."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
from doc_blocks import blocks_of
from doc_gate import MAX_SECONDS


def load_program(page: str, name: str, folder: Path, patching: pytest.MonkeyPatch, *, model_url: str) -> ModuleType:
    """The module of this name, beside the page's other files, with more time at its end than a busy machine takes;
    OpenAI is at `model_url`."""
    for block in blocks_of(page):
        if block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")
    patching.chdir(folder)
    patching.setenv("OPENAI_API_KEY", "...")
    patching.setenv("MEMORY_PROVIDERS", json.dumps({"openai": {"base_url": model_url}}))
    spec = importlib.util.spec_from_file_location(Path(name).stem, folder / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.ENDING_SECONDS == 20, "as the page says"
    module.ENDING_SECONDS = MAX_SECONDS
    return module
