"""The pages of docs/reference, with what is made from the code as the code makes it."""

from pathlib import Path

from docsite import commands, http_pages, python_page, settings_table
from docsite.marked import refreshed
from roomlore.surfaces.mcp import reference as mcp

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def pages() -> dict[str, str]:
    """Every page of the reference that the code has a part in, by its name, as it should be."""
    parts = {
        "cli.md": commands.regions(),
        "http.md": http_pages.regions(),
        "settings.md": settings_table.regions(),
    }
    mixed = {name: refreshed((REFERENCE / name).read_text(encoding="utf-8"), made) for name, made in parts.items()}
    return {**mixed, "http-fields.md": http_pages.fields_page(), "mcp.md": mcp.page(), "python.md": python_page.page()}
