"""The pages about MCP say what is there: the reference is the one that the code makes."""

import re
from pathlib import Path

from docsite.mcp_page import page

from roomlore_server.mcp import TOOLS

DOCS = Path(__file__).parents[3] / "docs"


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
