"""The HTTP service."""

from roomlore_server.http.app import create_app, create_mcp_app
from roomlore_server.http.processes import serve_in_processes
from roomlore_server.http.server import serve

__all__ = ["create_app", "create_mcp_app", "serve", "serve_in_processes"]
