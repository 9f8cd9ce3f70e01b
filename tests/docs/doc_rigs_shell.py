"""Rigs of the pages that are followed in a shell."""

import json

from doc_page import Page
from doc_rigs import rig

from roomlore.testing.model_answers import Says
from roomlore.testing.model_server import serve_models


def at_openai(page: Page, url: str) -> None:
    """Calls of OpenAI go to this address."""
    page.environment["MEMORY_PROVIDERS"] = json.dumps({"openai": {"base_url": url}})


@rig("docs/quickstart.md", "docs/quickstart.zh.md")
def quickstart(page: Page):
    english = ["王姐 brings", " lamb skewers, 小李 charcoal and drinks."]
    chinese = ["王姐带", "羊肉串，小李带炭和饮料。"]
    pieces = chinese if page.path.endswith("zh.md") else english
    with serve_models(lambda _: Says(pieces=pieces)) as server:
        at_openai(page, server.url)
        yield
    (asked,) = server.requests
    assert "王姐" in asked.prompt
    assert "pump" not in asked.prompt
    assert "水泵" not in asked.prompt
