"""The pages of docs/reference, with their generated parts."""

from pathlib import Path

from docsite import commands, http_pages, mcp_page, python_page, settings_table
from docsite.marked import refreshed

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def pages() -> dict[str, str]:
    """Return every page of the reference with generated parts, by its name."""
    parts = {
        "cli.md": commands.regions(),
        "http.md": http_pages.regions(),
        "settings.md": settings_table.regions(),
    }
    mixed = {name: refreshed((REFERENCE / name).read_text(encoding="utf-8"), made) for name, made in parts.items()}
    whole = {"http-fields.md": http_pages.fields_page(), "mcp.md": mcp_page.page(), "python.md": python_page.page()}
    return mixed | whole
