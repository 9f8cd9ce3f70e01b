"""Recall: which facts are worth their tokens in a prompt, and how they stand there."""
