#!/bin/sh
# mcp 2.3.0 (the Python SDK of the Model Context Protocol), tools declared with `MCPServer.tool()`.
#
# A tool declares `text: str | None`, and its schema says string or null. If a client sends a string, the server parses
# it as JSON before it validates: the text `[1, 2]` is refused, since it is now a list, and the text `null` arrives as
# None. Texts that parse as a number or a truth value stay texts, and so does everything if the type is `str` alone.
# So a note such as "[draft]" is stored, and "[1]" is an error; a word "null" vanishes.
#
# Seen (Linux, Python 3.11):
#   str        '[1, 2]' -> '[1, 2]'
#   str        'null'   -> 'null'
#   str | None '[1, 2]' -> error
#   str | None 'null'   -> None
#   str | None '5'      -> '5'
#
# Exits with 1 if an optional string no longer differs from a string.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mcp==2.3.0
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import sys

from mcp.client import Client
from mcp.server import MCPServer

server = MCPServer("notes", log_level="CRITICAL")


@server.tool()
async def plain(text: str) -> str:
    return repr(text)


@server.tool()
async def optional(text: str | None = None) -> str:
    return repr(text)


async def main() -> int:
    seen = {}
    async with Client(server) as client:
        for tool, text in (
            ("plain", "[1, 2]"),
            ("plain", "null"),
            ("optional", "[1, 2]"),
            ("optional", "null"),
            ("optional", "5"),
        ):
            answer = await client.call_tool(tool, {"text": text})
            seen[tool, text] = "error" if answer.is_error else answer.content[0].text
            print(f"{'str' if tool == 'plain' else 'str | None':10} {text!r:8} -> {seen[tool, text]}")
    expected = {
        ("plain", "[1, 2]"): "'[1, 2]'",
        ("plain", "null"): "'null'",
        ("optional", "[1, 2]"): "error",
        ("optional", "null"): "None",
        ("optional", "5"): "'5'",
    }
    return 0 if seen == expected else 1


sys.exit(asyncio.run(main()))
PYTHON
