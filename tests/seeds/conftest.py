"""Tests of the design documents, written as a caller would use what they describe."""

import os

import pytest


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """No setting and no token of whoever runs the tests. What steers the tests themselves stays."""
    for name in list(os.environ):
        upper = name.upper()
        is_setting = upper.startswith(("MEMORY_", "ROOMLORE_")) and not upper.startswith("ROOMLORE_TEST_")
        if is_setting or upper.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(str(tmp_path))


@pytest.fixture
def two_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens for the two providers of the summary model."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-openrouter")
    monkeypatch.setenv("SILICONFLOW_API_KEY", "sk-siliconflow")
