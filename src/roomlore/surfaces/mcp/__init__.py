"""The MCP server: tools that let a model remember, search and look back."""

from roomlore.surfaces.mcp.endpoint import McpEndpoint
from roomlore.surfaces.mcp.server import make_server
from roomlore.surfaces.mcp.stdio import serve_stdio
from roomlore.surfaces.mcp.tool import Tool, Visitor
from roomlore.surfaces.mcp.tools import TOOLS

__all__ = ["TOOLS", "McpEndpoint", "Tool", "Visitor", "make_server", "serve_stdio"]
