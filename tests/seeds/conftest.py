"""Tests of the design documents, written as a caller would use what they describe."""

import os

import pytest


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in [name for name in os.environ if name.upper().startswith(("MEMORY_", "ROOMLORE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(str(tmp_path))


@pytest.fixture
def two_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens for the two providers of the summary model, and for no other."""
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-openrouter")
    monkeypatch.setenv("SILICONFLOW_API_KEY", "sk-siliconflow")
