"""Memories: versioned statements in a scope, and the log of how they came to be."""
