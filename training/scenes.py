"""From labelled rooms to what the net learns from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from roomlore.core.analysis import Participants, analyse
from roomlore.core.linking.features import PAIR, SELF, LinkView, view
from roomlore.core.linking.model import LinkModel, link
from roomlore.core.linking.window import CANDIDATES, SIZE, RoomWindow
from roomlore.core.models import Entry, Link, LinkKind, Role
from training.rooms import LabelledRoom

LEARNED = (Role.USER, Role.ASSISTANT)
LIKELY, DRAWN = 22, 10
NOT_THERE = -1e9


@dataclass(frozen=True, slots=True)
class Scenes:
    """Of n messages, each with k candidates: the likely ones and a few drawn from the rest.

    `pairs` float16 (n, k, pair features); `own` float32 (n, self features); `offset` float32 (n, k): log of how many
    candidates each stands for, `NOT_THERE` for none; `gold` float32 (n, k + 1), the last column for something new.
    """

    pairs: npt.NDArray[np.float16]
    own: npt.NDArray[np.float32]
    offset: npt.NDArray[np.float32]
    gold: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.own)


def gather(room: LabelledRoom, model: LinkModel | None, rng: np.random.Generator) -> Scenes:
    """Walks a room as ingest does, linking with `model`; without one nothing is linked."""
    window, people, seen = RoomWindow(), Participants(), []
    first = next((place for place, label in enumerate(room.labels) if label.annotated), SIZE) - SIZE
    for place, (message, label) in enumerate(zip(room.messages, room.labels, strict=True)):
        if place >= first:
            features = analyse(message, people)
            if label.annotated and message.role in LEARNED and not message.reply_to and not message.root_id:
                look = view(window, message, features)
                gold = np.isin(window.arrival[look.rows], [parent + 1 for parent in label.parents]) & look.open
                seen.append(_few(look, gold, model, rng))
            found = link(model, window, message, features) if model else Link(kind=LinkKind.NEW, thread=place + 1)
            window.push(Entry(message=message, features=features, link=found))
        people.see(message.sender_id, message.sender_name)
    return Scenes(*(np.stack(column) for column in zip(*seen, strict=True))) if seen else EMPTY


def _few(
    look: LinkView, gold: npt.NDArray[np.bool_], model: LinkModel | None, rng: np.random.Generator
) -> tuple[npt.NDArray[Any], ...]:
    """The likely candidates, right ones first, and a few of the others, each standing for its share of them."""
    scores = model.scores(look)[:-1] if model else np.arange(CANDIDATES, dtype=np.float32)
    order = np.argsort(-np.where(look.open, scores, NOT_THERE) - 1e6 * gold, kind="stable")
    rest = max(0, int(look.open.sum()) - LIKELY)
    drawn = order[LIKELY:][rng.integers(0, max(rest, 1), DRAWN)]
    chosen = np.concatenate((order[:LIKELY], drawn))
    offset = np.where(look.open[chosen], 0.0, NOT_THERE)
    offset[LIKELY:] = np.log(rest / DRAWN) if rest else NOT_THERE
    right = np.append(gold[chosen], not gold.any())
    right[LIKELY:-1] = False
    return look.pairs[:, chosen].T.astype(np.float16), look.own, offset.astype(np.float32), right.astype(np.float32)


_KEPT = LIKELY + DRAWN
EMPTY = Scenes(
    np.zeros((0, _KEPT, len(PAIR)), np.float16),
    np.zeros((0, len(SELF)), np.float32),
    np.zeros((0, _KEPT), np.float32),
    np.zeros((0, _KEPT + 1), np.float32),
)


def join(parts: list[Scenes]) -> Scenes:
    return Scenes(*(np.concatenate([getattr(part, name) for part in parts or [EMPTY]]) for name in Scenes.__slots__))
