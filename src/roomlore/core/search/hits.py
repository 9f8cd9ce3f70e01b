"""The values of searching and indexing. Columns are numpy arrays; times in them are whole microseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roomlore.core.dates import TimeSpan
from roomlore.core.mentions import Naming
from roomlore.core.models import Role, Room, StoredMessage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchWeights:
    """Compared by identity, since a room keeps what was derived with them.

    Words: `saturation` (k1) and `length_norm` (b, off at 0) are BM25's; `repeats` is the exponent of a word's count
    in the question (1: unchanged); `asking` is the worth of words that speak of the request ("summarize", "名字"),
    beside 1 for others (off at 1); `piece` is the worth of a single piece of Thai, kana or hangul beside its pairs,
    `framing` that of the words of a question in other languages, and `written` that of a word with its accents, beside
    it without them; `partner` is the worth of the other side's words in a dialogue, and `latest` the extra weight of
    the people's last utterance (off at 1 and 0).

    Neighbours: the share of a neighbour's words, those the message lacks, that count for it: `asked` if the message
    follows a question by somebody else, `after` of the next message, `beyond` of those two away; never across a pause
    of `pause_hours` (off at 0).

    Factors on the whole, each 1 + weight (off at 0): `speaker` for messages by a person whom the question names,
    `voice` for the side meant by "I" or "you" if an agent is in the room, `time` within the time asked for.
    `time_alone`: the value of a matching time without any other match. `question` and `short` are subtracted from
    questions and messages of a few words.

    Echoes, questions that repeat the query: a message counts as one from a likeness of `echo_from` on, fully from
    `echo_to` on; `answer` is the share of its relevance that goes to its best answer (off at 0), `next_answers` the
    probability that the next message by somebody else answers it whatever its link says, and `next_fades` the factor on
    that with each further message.

    `meaning`: the weight of the vectors' nearness, beside 1 - `meaning` for words.
    """

    saturation: float = 1.2
    length_norm: float = 0.85
    repeats: float = 0.8
    asking: float = 0.6
    piece: float = 0.3
    framing: float = 0.2
    written: float = 0.5
    partner: float = 0.5
    latest: float = 0.5
    asked: float = 0.6
    after: float = 0.5
    beyond: float = 0.25
    pause_hours: float = 3.0
    speaker: float = 1.0
    voice: float = 1.0
    time: float = 1.0
    time_alone: float = 0.2
    question: float = 0.1
    short: float = 0.8
    echo_from: float = 0.1
    echo_to: float = 0.3
    answer: float = 1.2
    next_answers: float = 0.8
    next_fades: float = 0.9
    meaning: float = 0.45


WEIGHTS = SearchWeights()


SearchMode = Literal["hybrid", "lexical"]
MAX_COUNT = 255
"""A word that occurs more often in a message counts this often: PostgreSQL's limit."""
NEIGHBOURHOOD = 512
"""The nearest neighbours that a search looks at."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]

ROLES = tuple(Role)
"""A message's role in a column is its index in this tuple."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """The model of a vector. Vectors of two models are never compared."""

    name: str
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """The positions of a question's words in one room, word after word, each by arrival ascending.

    The rows of `words[i]` end at `ends[i]` and begin at the end of the word before. `arrivals`: the message; `counts`:
    occurrences of the word in it. `room` counts the room's messages and words.
    """

    room: Room
    words: tuple[str, ...]
    ends: Ints
    arrivals: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, eq=False)
class RoomWords:
    """The indexed words of the messages of a room.

    `numbers`: by word, as `query.spell` writes it. It only grows, so facts of earlier revisions may share it. `table`:
    a column for each distinct word of a message, in order of messages: the number of the word, the message as an index
    into the columns of its facts, and how often the word occurs in it.
    """

    numbers: dict[str, int]
    table: NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFacts:
    """The properties of each message of a room that ranking needs, in order of arrival, without deleted messages.

    `senders` are indices into `sender_ids`; `roles` indices into `ROLES`; `lengths` are words as indexed; `parents` and
    `threads` are arrivals, a missing parent 0; `parent_odds` the probability of that parent. `naming`: the senders'
    names, or else their ids. `words`: None if they are not kept. `revision`: the room's when this was read. `derived`:
    what ranking computed of the rest, once for all questions.
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
    words: RoomWords | None = None
    derived: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRows:
    """Rows of `RoomFacts` as the store returns them, as columns in order of arrival. `deleted`: the row is to be
    removed, and its other values are meaningless. `words`: the indexed words of each message with spaces between them,
    as `query.spell` writes them; None if they were not read."""

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
    words: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPoint:
    """A vector and its owner. `scope`: the room of a message, the scope of a memory; `number`: its arrival or row
    number there; `payload`: JSON kept with it if the index supports it."""

    tenant: str
    scope: str
    number: int
    vector: Vectors
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The nearest points of a vector, nearest first (ties: smaller number first): `numbers`, and `similarities`: the
    cosine mapped to [0, 1] as (1 + cosine) / 2."""

    numbers: Ints
    similarities: Floats


@dataclass(frozen=True, slots=True)
class Dense:
    """The result of vector search for each text. `asked`: the texts' vectors, a row each. `used`: True if a search was
    made. `problem`: the reason for a missing or incomplete search."""

    found: Sequence[Nearest] = ()
    asked: Vectors | None = None
    used: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTask:
    """A message or a version of a memory whose vector is due. `scope`, `number`: as of its `VectorPoint`. `version`
    grows with each change while it waits; `lease` is that of the claim that took it."""

    tenant: str
    scope: str
    number: int
    version: int
    lease: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """The state of an index derived from SQL. `name`: 'messages' or 'memories' (vectors), or 'words' (the lexical
    index).

    `model`: the model that made it. `generation`: an id that is new with each rebuild. `cursor`: the position of the
    rebuild (tenant, room, arrival; for memories a row number alone), None when it is complete.
    """

    name: str
    model: EmbeddingModel
    generation: str
    cursor: tuple[str, str, int] | None
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message found. `score`: in [0, 1]; comparable within one answer. `signals`: the parts of the score. `reason`:
    why it was found, in words, with semicolons between them. `outside`: it is from another time than the question asks
    for.

    `conversation`: the message and those around it of its conversation, in people's order, if requested.
    """

    message: StoredMessage
    score: float
    signals: Mapping[str, float]
    reason: str
    outside: bool = False
    conversation: tuple[StoredMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The result of a search, best first.

    `room_id`: None if several rooms were searched. `mode`: the kind of search: 'lexical' if no embedder is configured
    or the index cannot be used. `degraded`: None, or the reason for a reduced search. `times`: the time expressions
    understood in the question, with their meaning. `hint`: None, or what to know of it: that the viewer is unknown, who
    of the senders asked for has written nothing and who may be meant, that nothing is from the time asked for, or why
    nothing was found and what to try.
    """

    room_id: str | None
    query: str
    mode: SearchMode
    hits: tuple[SearchHit, ...]
    times: tuple[TimeSpan, ...] = ()
    degraded: str | None = None
    hint: str | None = None
    search_ms: float = 0.0


def no_postings(room: Room, words: Sequence[str]) -> Postings:
    """Return the postings of words that occur nowhere."""
    none = np.zeros(0, np.int64)
    ends = np.zeros(len(words), np.int64)
    return Postings(room=room, words=tuple(words), ends=ends, arrivals=none, counts=none)
