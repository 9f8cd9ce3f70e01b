"""The plugin of LangBot. What it does is in its event listener."""

from langbot_plugin.api.definition.plugin import BasePlugin


class RoomlorePlugin(BasePlugin):
    """Holds the settings."""
