"""The reference of MCP says what is there."""

import re

from docsite.mcp_page import regions

from roomlore_server.mcp import TOOLS


def test_the_reference_names_every_field():
    told = regions()["mcp"]
    for tool in TOOLS:
        section = re.search(rf"^## {tool.name}\n.*?(?=^## |\Z)", told, re.M | re.S).group()
        for field in (*tool.takes.model_fields, *tool.gives.model_fields):
            assert f"| `{field}` |" in section
    assert "`messages[].reason`" in told
    assert "<id>" not in told
