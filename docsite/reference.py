"""The pages of docs/reference, with what the code says in the regions that people left for it."""

from pathlib import Path

from docsite import commands, http_pages, mcp_page, python_page, settings_table
from docsite.marked import filled

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
_PARTS = {
    "cli.md": commands.regions,
    "http.md": http_pages.regions,
    "http-fields.md": http_pages.fields,
    "mcp.md": mcp_page.regions,
    "python.md": python_page.regions,
    "settings.md": settings_table.regions,
}


def pages() -> dict[str, str]:
    """Return every page of the reference with generated parts, by its name."""
    return {name: filled((REFERENCE / name).read_text(encoding="utf-8"), made()) for name, made in _PARTS.items()}
