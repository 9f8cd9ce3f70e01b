"""Each extra works with what it declares: everything else that this environment has is hidden from the process."""

import re
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import pytest
from packaging.requirements import Requirement

HIDE = """
import sys
from importlib.machinery import PathFinder

class Visible(PathFinder):
    hidden = frozenset(sys.argv[1].split(","))

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in cls.hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Visible
"""

LIBRARY = """
import roomlore
with roomlore.open_sync("chat.db") as lore:
    lore.messages.add([roomlore.Message(id="1", room_id="r", sender_id="ann", text="Where do we meet?")])
    assert lore.context.build("r", "1").strategy
"""
LINKER = """
from roomlore.adapters.weights import load_link_model
assert load_link_model(compiled=True).kernel
"""
COMMAND = """
from roomlore.surfaces.cli import main
sys.argv = ["roomlore", "--db", "chat.db", "doctor"]
main()
"""

USES = {
    "library": ("", LIBRARY),
    "command": ("", COMMAND),
    "server": ("server", "import roomlore_server.http.server, roomlore_console.routes"),
    "openai": ("openai", "import roomlore.adapters.chat.wire"),
    "openai-embeddings": ("openai", "import roomlore.adapters.embedding.openai_compatible"),
    "mcp": ("mcp", "import roomlore_server.mcp.server"),
    "postgres": ("postgres", "import roomlore.adapters.vectors.pgvector"),
    "qdrant": ("qdrant", "import roomlore.adapters.qdrant.index"),
    "embeddings": ("embeddings", "import roomlore.adapters.embedding.offline_e5"),
    "durable": ("durable", "import roomlore.adapters.dbos.engine, roomlore.adapters.dbos.client"),
    "redis": ("redis", "import roomlore.adapters.redis.cache"),
    "langfuse": ("langfuse", "import roomlore.adapters.langfuse.prompts"),
    "otel": ("otel", "import roomlore.adapters.otel.tracer"),
    "sentry": ("sentry", "import roomlore.adapters.sentry.reports"),
    "kernel": (
        "kernel",
        LINKER,
    ),
    "openai-agents": ("openai-agents", "import roomlore_integrations.openai_agents"),
}


@cache
def installed() -> dict[str, frozenset[str]]:
    """Return the distributions of each importable package."""
    return {package: frozenset(map(plain, owners)) for package, owners in packages_distributions().items()}


def plain(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def brought(extra: str) -> set[str]:
    """Return the distributions that `pip install roomlore[extra]` brings."""
    found: set[tuple[str, frozenset[str]]] = set()
    left = [Requirement(f"roomlore[{extra}]" if extra else "roomlore")]
    while left:
        one = left.pop()
        asked = (plain(one.name), frozenset(one.extras))
        if asked in found:
            continue
        found.add(asked)
        try:
            needs = [Requirement(line) for line in requires(one.name) or ()]
        except PackageNotFoundError:
            continue
        extras = ("", *one.extras)
        left += [need for need in needs if not need.marker or any(need.marker.evaluate({"extra": x}) for x in extras)]
    return {name for name, _ in found}


@pytest.mark.parametrize("use", USES)
def test_an_extra_brings_all_that_it_needs(use, tmp_path):
    extra, code = USES[use]
    kept = brought(extra)
    hidden = {package for package, owners in installed().items() if not owners & kept}
    assert "hypothesis" in hidden
    command = [sys.executable, "-c", HIDE + code, ",".join(hidden)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
