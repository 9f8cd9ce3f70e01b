"""The words of searching and indexing as frozen values. Columns are numpy arrays; times in them are whole microseconds
since 1970-01-01 UTC."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roomlore.core.models import Role, Room, StoredMessage
from roomlore.core.naming import Naming

SearchMode = Literal["hybrid", "lexical"]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]

ROLES = tuple(Role)
"""A message's role in a column is its place in this tuple."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """What made a vector: vectors of two models are never compared."""

    name: str
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """Where the words of a question stand in one room, word after word, each by arrival ascending.

    The rows of `words[i]` end at `ends[i]` and begin where those of the word before it end. `arrivals`: the message;
    `counts`: how often the word stands in it; `lengths`: how many words the message has in all. `room` counts the
    room's messages and words.
    """

    room: Room
    words: tuple[str, ...]
    ends: Ints
    arrivals: Ints
    counts: Ints
    lengths: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomFacts:
    """What ranking asks of each message of a room, in order of arrival, without deleted ones.

    `senders` are places in `sender_ids`; `roles` places in `ROLES`; `lengths` are words as indexed; `parents` and
    `threads` are arrivals, a missing parent 0; `parent_odds` the probability of that parent. `naming`: what the senders
    are called, by their names or else their ids. `revision`: the room's when this was read.
    """

    revision: int
    sender_ids: tuple[str, ...]
    sender_names: tuple[str, ...]
    naming: Naming
    arrivals: Ints
    sent_at: Ints
    senders: Ints
    roles: Ints
    lengths: Ints
    questions: NDArray[np.bool_]
    parents: Ints
    parent_odds: Floats
    threads: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRows:
    """Lines of `RoomFacts` as the store gives them, as columns in order of arrival. `deleted`: the line is to be
    dropped, and the rest of it says nothing."""

    arrivals: Ints
    sent_at: Ints
    sender_ids: Sequence[str]
    sender_names: Sequence[str]
    roles: Ints
    lengths: Ints
    questions: NDArray[np.bool_]
    parents: Ints
    parent_odds: Floats
    threads: Ints
    deleted: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPoint:
    """A vector and whose it is. `scope`: the room of a message, the scope of a memory; `number`: its arrival or row
    number there; `payload`: JSON kept beside it where the index can."""

    tenant: str
    scope: str
    number: int
    vector: Vectors
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """What lies nearest to a vector, nearest first (ties: smaller number first): `numbers`, and `similarities`: the
    cosine raised to [0, 1] as (1 + cosine) / 2."""

    numbers: Ints
    similarities: Floats


@dataclass(frozen=True, slots=True)
class Dense:
    """What meaning found for each text. `asked`: the texts' vectors, a row each. `used`: it was asked at all.
    `problem`: why not, or why less was found than there is."""

    found: Sequence[Nearest] = ()
    asked: Vectors | None = None
    used: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTask:
    """A message or a version of a memory whose vector is due. `scope`, `number`: as of its `VectorPoint`. `version`
    grows each time it changes while it waits; `lease` is of the claim that took it, and of no other."""

    tenant: str
    scope: str
    number: int
    version: int
    lease: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """How an index derived from SQL stands. `name`: 'messages' or 'memories' (vectors), or 'words' (the lexical index).

    `model`: what made it. `generation`: an id new with each rebuild. `cursor`: how far the rebuild has come (tenant,
    room, arrival; of memories a row number alone), None when it is whole.
    """

    name: str
    model: EmbeddingModel
    generation: str
    cursor: tuple[str, str, int] | None
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message found, with its score in [0, 1], what the score is made of, and that in words.

    `conversation`: the message and those of its conversation around it, in people's order, where they were asked for.
    """

    message: StoredMessage
    score: float
    signals: Mapping[str, float]
    reason: str
    conversation: tuple[StoredMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """What a search found, best first.

    `mode`: how it was searched: 'lexical' where no embedder is configured or the index cannot be used. `degraded`:
    None, or why less was done than asked for. `times`: the time expressions understood in the
    question, with what they mean.
    """

    room_id: str
    query: str
    mode: SearchMode
    hits: tuple[SearchHit, ...]
    times: tuple[Any, ...] = ()
    degraded: str | None = None
    search_ms: float = 0.0


def no_postings(room: Room, words: Sequence[str]) -> Postings:
    """Postings of words that stand nowhere."""
    none = np.zeros(0, np.int64)
    ends = np.zeros(len(words), np.int64)
    return Postings(room=room, words=tuple(words), ends=ends, arrivals=none, counts=none, lengths=none)
