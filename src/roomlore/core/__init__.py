"""What roomlore decides: frozen values and pure functions, without input or output, clock, async and logging."""

DEFAULT_TENANT = "default"
"""The tenant of a caller that names none."""
