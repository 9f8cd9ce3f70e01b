"""What roomlore decides: frozen values and pure functions, without input or output, clock, async and logging."""

DEFAULT_TENANT = "default"
"""The tenant of a caller that names none."""
PACKAGES = frozenset({"roomlore", "roomlore_console", "roomlore_importers", "roomlore_integrations", "roomlore_server"})
"""The import names of the library and of what is built on it here."""
