"""Digests of a room, thread by thread."""
