"""Tests of the design documents, written as a caller would use what they describe."""

import os

import pytest


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in [name for name in os.environ if name.upper().startswith(("MEMORY_", "ROOMLORE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(str(tmp_path))
