"""Server-sent events, and bodies of a bounded size."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator

from roomlore.core.errors import BadModelOutput

WHOLE_BYTES = 2 * 1024 * 1024
"""The longest answer read; the longest models of today write a quarter of it. To parse more would stop the loop."""
_EVENT_BYTES = 1024 * 1024
_NOISE_BYTES = 1024 * 1024


async def whole(parts: AsyncIterator[bytes]) -> bytes:
    """The body. Raises `BadModelOutput` as soon as it is longer than `WHOLE_BYTES`."""
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > WHOLE_BYTES:
            raise BadModelOutput("sends more than any answer is long")
    return bytes(body)


async def data(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The data of each event. An event that the body ends within is left out.

    Raises `BadModelOutput` for an event longer than 1 MiB, and for as much between two events that is none.
    """
    lines = _Lines()
    said: list[bytes] = []
    size = noise = 0
    async for part in parts:
        for line in lines.take(part):
            if line.startswith(b"data:"):
                said.append(line[5:].removeprefix(b" "))
                size += len(line)
            elif not line and said:
                yield b"\n".join(said)
                said, size, noise = [], 0, 0
            else:
                noise += len(line) + 1
        if size + lines.waiting > _EVENT_BYTES or noise > _NOISE_BYTES:
            raise BadModelOutput("sends noise in the place of an answer")


class _Lines:
    """Cuts bytes into lines that end in LF or CRLF."""

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def waiting(self) -> int:
        """Bytes of the line that has not ended yet."""
        return len(self._rest)

    def take(self, part: bytes) -> Iterator[bytes]:
        """The lines that end in this part."""
        self._rest += part
        if b"\n" not in part:
            return iter(())
        *ended, self._rest = self._rest.split(b"\n")
        return (bytes(line).removesuffix(b"\r") for line in ended)
