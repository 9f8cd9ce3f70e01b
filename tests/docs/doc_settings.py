"""Configuration that the documentation shows: roomlore's own, and that of hosts of MCP."""

from pathlib import Path
from typing import Any

import typer

from roomlore.core.memory.memory import check_scope
from roomlore.settings import Settings, known_fields
from roomlore.surfaces.cli.app import app


def load_settings(text: str, path: Path) -> None:
    """Raises what roomlore would say of it."""
    path.write_text(text, encoding="utf-8")
    assert Settings(path).ignored == ()


def check_hosts(servers: dict[str, Any]) -> None:
    """Every server is one that roomlore can be started as, or asked as."""
    assert servers
    for server in servers.values():
        _check_address(server) if "url" in server else _check_command(server)


def _check_address(server: dict[str, Any]) -> None:
    address, _, query = server["url"].partition("?")
    assert address.startswith("http://127.0.0.1:")
    assert address.endswith("/mcp")
    if query:
        check_scope(query.removeprefix("scope="))
    if "headers" in server:
        assert server["headers"]["Authorization"].startswith("Bearer rl_")


def _check_command(server: dict[str, Any]) -> None:
    assert Path(server["command"]).name == "roomlore"
    at = server["args"].index("mcp")
    root = typer.main.get_command(app)
    with root.make_context("roomlore", server["args"][: at + 1]) as context:
        assert context.params["db"].endswith(".db")
        options = root.get_command(context, "mcp").make_context("mcp", server["args"][at + 1 :], parent=context).params
    if options["scope"] is not None:
        check_scope(options["scope"])
    known = {f"MEMORY_{field.upper()}" for field in known_fields()}
    assert set(server.get("env", {})) <= known
