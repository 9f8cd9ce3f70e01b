"""The engines on which the tests of services run."""

import os

ENGINES = ["sqlite_url", "postgres_url"] if os.environ.get("ROOMLORE_TEST_ENGINES") == "all" else ["sqlite_url"]
"""Fixtures. One engine, since the contract of the storage holds on each; all of them in `make soak`."""
