"""The MCP server: tools that let a model remember, search and look back."""

from roomlore_server.mcp.server import McpEndpoint, make_server, serve_stdio
from roomlore_server.mcp.tools import TOOLS, Tool, Visitor

__all__ = ["TOOLS", "McpEndpoint", "Tool", "Visitor", "make_server", "serve_stdio"]
