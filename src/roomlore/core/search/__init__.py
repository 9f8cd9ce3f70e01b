"""Searching messages: the question, the index, the facts of a room, and the ranking."""
