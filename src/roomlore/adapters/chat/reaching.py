"""Whether a provider can be reached and takes the key, without asking a model for anything."""

import httpx

from roomlore.core.chat.registry import Provider
from roomlore.core.errors import ModelUnavailable

_CHECK = "Check the address, the network and the proxy."


async def reach(provider: Provider, *, key: str | None, timeout_seconds: float) -> None:
    """Asks `GET {base_url}/models`: any status but a refusal of the key says that the server is there. Raises
    `ModelUnavailable`. Redirects are not followed, so that the key goes nowhere else."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with (
            httpx.AsyncClient(timeout=timeout_seconds) as client,
            client.stream("GET", f"{provider.base_url.rstrip('/')}/models", headers=headers) as answer,
        ):
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise ModelUnavailable(
            f"It cannot be reached ({type(error).__name__}). {_CHECK}", cause="unreachable"
        ) from error
    if status in (401, 403):
        raise ModelUnavailable(
            f"It refuses the key (HTTP {status}). Check {provider.key_variable or 'whether it needs a key'}.",
            cause="refused",
        )
