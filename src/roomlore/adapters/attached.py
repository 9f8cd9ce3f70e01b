"""The content of attachments: of files below a folder, from web addresses, and from `data:` addresses.

The name of a web address is looked up once, and the connection goes to the address that was checked; so does each
redirect. Imported where attachments are read, as `httpx2` comes with the extra of the models.
"""

import asyncio
import socket
from base64 import b64decode
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes, urljoin

import httpx2

from roomlore.adapters.tls import trusted
from roomlore.core import DEFAULT_TENANT
from roomlore.core.addresses import check_public
from roomlore.core.attachments import Attachment
from roomlore.core.errors import InvalidInput, Unavailable

Content = TypeVar("Content", bytes, bytearray)

SECONDS = 60.0
"""Time for one attachment, with its redirects."""
_TENANTS = "tenants"
"""The folder below that of the attachments that has a folder for each tenant but the default one."""
_MOST_REDIRECTS = 3
_AGAIN = (408, 425, 429, *range(500, 600))
"""The statuses of servers that may answer otherwise later."""


class AttachedFiles:
    """Reads content as `ReadAttached` does. `folder`: where files lie; None if none are read. `private`: addresses that
    are not on the public internet are allowed. `most`: the longest content, in bytes."""

    def __init__(self, *, folder: Path | None, private: bool, most: int) -> None:
        self._folder = folder
        self._private = private
        self._most = most

    async def read(self, tenant: str, attachment: Attachment) -> bytes:
        """Return the content of the file if there is a folder, else what is at the address."""
        url = attachment.url
        try:
            async with asyncio.timeout(SECONDS):
                if attachment.file and self._folder is not None:
                    return await asyncio.to_thread(self._of_file, self._folder, tenant, attachment.file)
                return self._inline(url) if url[:5].lower() == "data:" else await self._fetched(url)
        except (InvalidInput, Unavailable):
            raise
        except (httpx2.InvalidURL, ValueError) as error:
            raise InvalidInput("attachment_address_invalid") from error
        except (httpx2.HTTPError, OSError) as error:
            raise Unavailable("attachment_unreachable", kind=type(error).__name__) from error

    def _of_file(self, folder: Path, tenant: str, name: str) -> bytes:
        own = _own_folder(folder.resolve(), tenant)
        path = (own / name).resolve()
        within = path.relative_to(own).parts if path.is_relative_to(own) else ()
        is_others = tenant == DEFAULT_TENANT and within[:1] and within[0].casefold() == _TENANTS
        if not within or is_others or not path.is_file():
            raise InvalidInput("attachment_file_missing")
        with path.open("rb") as file:
            return self._short_enough(file.read(self._most + 1))

    def _inline(self, url: str) -> bytes:
        head, _, content = url.partition(",")
        is_base64 = head.endswith(";base64")
        return self._short_enough(b64decode(content, validate=True) if is_base64 else unquote_to_bytes(content))

    async def _fetched(self, url: str) -> bytes:
        async with httpx2.AsyncClient(timeout=SECONDS, verify=trusted(), trust_env=False) as client:
            for _ in range(_MOST_REDIRECTS + 1):
                async with client.stream("GET", **await self._place(httpx2.URL(url))) as answer:
                    if not answer.has_redirect_location:
                        return await self._body(answer)
                    url = urljoin(url, answer.headers["location"])
        raise InvalidInput("attachment_redirects", most=_MOST_REDIRECTS)

    async def _place(self, url: httpx2.URL) -> dict[str, Any]:
        """Return the request to the address that the name has."""
        if url.scheme not in ("http", "https") or not url.host or url.userinfo:
            raise InvalidInput("attachment_address_invalid")
        address = await self._address(url.host, url.port or (443 if url.scheme == "https" else 80))
        headers = {"Host": url.netloc.decode("ascii"), "Accept-Encoding": "identity", "User-Agent": "roomlore"}
        names = {"sni_hostname": url.raw_host.decode("ascii")}
        return {"url": url.copy_with(host=address), "headers": headers, "extensions": names}

    async def _address(self, host: str, port: int) -> str:
        resolved = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(address[4][0]) for address in resolved]
        if not self._private:
            check_public(host, addresses, refusal="attachment_address_private")
        return addresses[0]

    async def _body(self, answer: httpx2.Response) -> bytes:
        if answer.status_code in _AGAIN:
            raise Unavailable("attachment_refused", status=answer.status_code)
        if answer.status_code != 200:
            raise InvalidInput("attachment_refused", status=answer.status_code)
        body = bytearray()
        async for part in answer.aiter_raw():
            body += part
            self._short_enough(body)
        return bytes(body)

    def _short_enough(self, content: Content) -> Content:
        """Return the content. Raise `InvalidInput` if it is longer than what is read."""
        if len(content) > self._most:
            raise InvalidInput("attachment_too_long", most=self._most)
        return content


def _own_folder(folder: Path, tenant: str) -> Path:
    """Return the folder of a tenant's files. Raise `InvalidInput` if its name is no name of a folder."""
    if tenant == DEFAULT_TENANT:
        return folder
    own = folder / _TENANTS / tenant
    if own.name != tenant or tenant == "..":
        raise InvalidInput("attachment_file_missing")
    return own.resolve()
