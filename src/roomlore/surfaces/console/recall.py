"""A playground for recall: whose facts, for what, in how many tokens; and what is taken with its scores."""

from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.recall.models import Recollection
from roomlore.surfaces.console.frame import Page

_USUAL_TOKENS = 500
_MOST_TOKENS = 1_000_000
_MOST_SCOPES = 10


async def recall(page: Page) -> Response:
    """Nothing is recalled until somebody is named."""
    lore, query = page.lore, page.asked("q")
    scopes = page.asked("scopes").replace(",", " ").split()
    tokens = page.number("tokens") or _USUAL_TOKENS
    if tokens > _MOST_TOKENS:
        raise InvalidInput(f"tokens is {tokens}; it must be a whole number from 1 to {_MOST_TOKENS}.")
    if len(scopes) > _MOST_SCOPES:
        raise InvalidInput(f"These are {len(scopes)} scopes; ask for at most {_MOST_SCOPES}.")
    found: Recollection | None = None
    if scopes:
        messages = [{"role": "user", "content": query}] if query else []
        found = await lore.recall.build(scopes, messages, max_tokens=tokens)
    return page.show("recall.html", found=found, asked=page.asked("scopes"), query=query, tokens=tokens)
