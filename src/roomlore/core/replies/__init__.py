"""Replies: what is asked of a model for one, and what comes of it."""
