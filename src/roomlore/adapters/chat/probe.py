"""Check that a provider of models can be reached. Imported at the first check, as HTTP clients come with the extra."""

import httpx2

from roomlore.core.chat import Provider
from roomlore.core.errors import ModelUnavailable

_CHECK = "Check the address, the network and the proxy."


async def reach(provider: Provider, *, key: str | None, timeout_seconds: float) -> None:
    """Send `GET {base_url}/models`. Any status but a refusal of the key shows that the server is there. Raises
    `ModelUnavailable`. Redirects are not followed, so that the key is not sent elsewhere."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with (
            httpx2.AsyncClient(timeout=timeout_seconds) as client,
            client.stream("GET", f"{provider.base_url.rstrip('/')}/models", headers=headers) as answer,
        ):
            status = answer.status_code
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise ModelUnavailable(
            f"It cannot be reached ({type(error).__name__}). {_CHECK}", cause="unreachable"
        ) from error
    if status in (401, 403):
        raise ModelUnavailable(
            f"It refuses the key (HTTP {status}). Check {provider.key_variable or 'whether it needs a key'}.",
            cause="refused",
        )
