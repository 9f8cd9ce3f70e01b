"""The metrics of several processes that serve one port."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from roomlore.wiring import Lore

_PUBLISH_SECONDS = 5.0


class ProcessMetrics:
    """The metrics of all processes that serve one port. Each publishes its own in `folder`, every five seconds."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, number

    @contextlib.asynccontextmanager
    async def publishing(self, lore: Lore) -> AsyncIterator[None]:
        task = asyncio.create_task(self._publish(lore))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def render(self, lore: Lore) -> bytes:
        """Return the metrics of all processes, each with the label `process`. Those of others are up to five seconds
        old."""
        others = await asyncio.to_thread(self._read)
        return merged({**others, self._number: lore.prometheus()})

    def _read(self) -> dict[int, bytes]:
        return {int(path.stem): path.read_bytes() for path in self._folder.glob("*.prom")}

    async def _publish(self, lore: Lore) -> None:
        while True:
            await asyncio.to_thread(self._write, lore.prometheus())
            await asyncio.sleep(_PUBLISH_SECONDS)

    def _write(self, text: bytes) -> None:
        place = self._folder / f"{self._number}.prom"
        place.with_suffix(".new").write_bytes(text)
        place.with_suffix(".new").replace(place)


def merged(texts: Mapping[int, bytes]) -> bytes:
    """Return several processes' metrics in Prometheus' text format as one, each value with the label `process`."""
    families: dict[str, tuple[list[str], list[str]]] = {}
    for process, text in sorted(texts.items()):
        head: list[str] = []
        values: list[str] = []
        for line in text.decode().splitlines():
            if line.startswith("# HELP "):
                head, values = families.setdefault(line.split(" ", 3)[2], ([], []))
                head[:] = [line]
            elif line.startswith("# TYPE "):
                head[1:] = [line]
            elif line:
                values.append(_labelled(line, process))
    return "".join(f"{line}\n" for head, values in families.values() for line in (*head, *values)).encode()


def _labelled(line: str, process: int) -> str:
    name, brace, rest = line.partition("{")
    if brace:
        return f'{name}{{process="{process}",{rest}'
    name, _, value = line.partition(" ")
    return f'{name}{{process="{process}"}} {value}'
