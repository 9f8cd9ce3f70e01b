"""The network faces of roomlore: HTTP in `http`, tools for models in `mcp`."""
