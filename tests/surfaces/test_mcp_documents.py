"""The pages about MCP say what is there: the reference is the one that the code makes, and hosts can read the JSON."""

import json
import re
from pathlib import Path

import pytest
import typer

from roomlore.core.memory.models import check_scope
from roomlore.settings import Settings
from roomlore.surfaces.cli.app import app as commands
from roomlore.surfaces.mcp import TOOLS
from roomlore.surfaces.mcp.reference import page

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "how-to" / "mcp.md").read_text(encoding="utf-8")
SERVERS = [
    (name, server)
    for block in re.findall(r"^```json\n(.*?)^```", GUIDE, re.M | re.S)
    for name, server in json.loads(block)["mcpServers"].items()
]


def test_the_reference_is_the_one_the_code_makes():
    told = (DOCS / "reference" / "mcp.md").read_text(encoding="utf-8")
    assert told == page(), "`make reference` makes it anew"


def test_the_reference_names_every_field():
    told = page()
    for tool in TOOLS:
        section = re.search(rf"^## {tool.name}\n.*?(?=^## |\Z)", told, re.M | re.S).group()
        for field in (*tool.takes.model_fields, *tool.gives.model_fields):
            assert f"| `{field}` |" in section
    assert "`messages[].reason`" in told
    assert "<id>" not in told


@pytest.mark.parametrize(("name", "server"), SERVERS, ids=[str(n) for n in range(len(SERVERS))])
def test_hosts_can_use_the_configuration(name, server):
    assert name
    if "url" in server:
        address, _, query = server["url"].partition("?")
        assert address == "http://127.0.0.1:8766/mcp"
        check_scope(query.removeprefix("scope="))
        assert server["headers"]["Authorization"].startswith("Bearer rl_")
        return
    assert server["command"] == "roomlore"
    root = typer.main.get_command(commands)
    before, after = server["args"][: server["args"].index("mcp")], server["args"][server["args"].index("mcp") + 1 :]
    with root.make_context("roomlore", [*before, "mcp"]) as context:
        assert context.params["db"].endswith(".db")
        options = root.get_command(context, "mcp").make_context("mcp", after, parent=context).params
    check_scope(options["scope"])
    known = {f"MEMORY_{field.upper()}" for field in Settings.model_fields}
    assert set(server.get("env", {})) <= known


def test_there_is_something_to_check():
    assert len(SERVERS) == 3
