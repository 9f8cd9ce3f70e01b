"""Draws the pictures of the documentation from real runs: `python -m bench pictures`."""

import argparse
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from bench.pictures import audience, cache, history, threads, window

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
PICTURES: Mapping[str, Callable[[], Awaitable[str]]] = {
    drawing_module.NAME: drawing_module.draw for drawing_module in (threads, history, window, cache, audience)
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=FOLDER, help="a folder; by default docs/pictures")


async def run(arguments: argparse.Namespace) -> None:
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        path = arguments.out / name
        path.write_text(await draw(), encoding="utf-8")
        print(f"{path}: {path.stat().st_size:,} bytes")
