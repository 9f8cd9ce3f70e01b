"""Recall: choose the facts worth their tokens in a prompt, and render them."""
