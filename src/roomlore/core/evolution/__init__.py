"""Evolution: what a model's answer asks for, and what of it becomes changes."""
