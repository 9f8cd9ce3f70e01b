"""Writes what the shipped model predicts for a folder of rooms, in the form that the context scorer reads.

usage: python -m training.evaluate SET_DIR OUT_DIR [--k 20] [--weights links.npz]
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from roomlore.adapters.weights import load_link_model
from roomlore.core.analysis import Participants, analyse
from roomlore.core.linking.model import LinkModel, link, select
from roomlore.core.linking.window import RoomWindow
from roomlore.core.models import Entry, Link, LinkKind, StoredMessage
from training.rooms import load_messages


def follow(messages: tuple[StoredMessage, ...], model: LinkModel) -> Iterator[Link]:
    """Links each message as ingest does, before any later one is seen."""
    window, people = RoomWindow(), Participants()
    for message in messages:
        features = analyse(message, people)
        found = link(model, window, message, features)
        window.push(Entry(message=message, features=features, link=found))
        people.see(message.sender_id, message.sender_name)
        yield found


def predictions(messages: tuple[StoredMessage, ...], model: LinkModel, k: int) -> Iterator[dict[str, object]]:
    for message, found in zip(messages, follow(messages, model), strict=True):
        answered = found.parent if found.kind is not LinkKind.NEW else None
        chosen = select(found, k)
        yield {
            "id": message.id,
            "selected": [messages[arrival - 1].id for arrival, _ in chosen],
            "scores": [share for _, share in chosen],
            "parent": None if answered is None else messages[answered - 1].id,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--weights", type=Path)
    options = parser.parse_args()
    model = LinkModel.of(np.load(options.weights)) if options.weights else load_link_model()
    options.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(options.set.glob("*.messages.jsonl")):
        lines = (json.dumps(row) + "\n" for row in predictions(load_messages(path), model, options.k))
        (options.out / path.name.replace(".messages.", ".predictions.")).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
