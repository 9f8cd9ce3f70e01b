"""roomlore in agent frameworks, one module each, and with the clients of mem0 in `mem0`."""
