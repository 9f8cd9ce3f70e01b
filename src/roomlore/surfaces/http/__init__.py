"""The HTTP service."""

from roomlore.surfaces.http.app import create_app, create_mcp_app
from roomlore.surfaces.http.processes import serve_in_processes
from roomlore.surfaces.http.server import serve

__all__ = ["create_app", "create_mcp_app", "serve", "serve_in_processes"]
