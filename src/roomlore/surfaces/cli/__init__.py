"""The command line."""

from roomlore.surfaces.cli.app import main

__all__ = ["main"]
