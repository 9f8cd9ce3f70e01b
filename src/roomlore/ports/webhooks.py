"""Requests that roomlore sends to a program of the administrator."""

from typing import Protocol


class Webhook(Protocol):
    """Sends to the one address that is configured."""

    async def send(self, body: bytes, *, message_id: str) -> None:
        """Send a JSON body, once, signed. `message_id`: the same for each attempt.

        Return when the receiver has accepted it. Raises `Unavailable` if it cannot be reached, does not answer in time
        or does not accept it, `InvalidInput` if the address is not allowed.
        """
