"""Replies: build the request to a model, and read its answer."""
