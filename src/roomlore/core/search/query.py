"""Parse a question: its words and their worth, the people it names, the speaker, and the time; and score a room by its
words (BM25, exact) and by meaning.
"""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal

import numpy as np
import regex
from numpy.typing import NDArray

from roomlore.core import lexicon
from roomlore.core.attachments import caption_of, found_words
from roomlore.core.dates import TimeSpan
from roomlore.core.mentions import SpokenText, sounds_like_agent, utterances
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.search.hits import (
    ROLES,
    WEIGHTS,
    EmbeddingModel,
    Floats,
    Ints,
    MessageFacts,
    Nearest,
    Postings,
    SearchWeights,
)
from roomlore.core.text import (
    ENGLISH,
    HAN,
    Memo,
    head,
    in_other_script,
    is_chinese,
    is_question,
    is_written,
    keywords,
    pieces_in,
    requests,
    terms,
    unframed,
    without_grammar,
    written,
)

# Words about the request or about talking itself, which seldom occur in what is searched for.
_ASKING = frozenset(terms(" ".join(lexicon.words("request_word"))))
# Words of which a question may consist that asks only for a time: "what did you all talk about yesterday?"
_FRAME = frozenset(terms(" ".join(lexicon.words("frame_word"))))
# What a Chinese question may consist of that asks only for a time.
_FRAME_HAN = lazy_pattern(lexicon.alternatives("frame_word", "zh"))
# A request to answer, at the beginning.
_REQUEST = lazy_pattern(rf"\W*(?:{lexicon.alternatives('request_opening')})", re.IGNORECASE)
_SPEAKER = lexicon.pattern("first_person", re.IGNORECASE)
_SPOKEN_TO = lexicon.pattern("second_person", re.IGNORECASE)

# The runs of a question between spaces and marks.
_RUNS = regex.compile(r"(?:[^\s\p{P}]|['’])+")
# A run with Chinese, which is cut into words.
_CHINESE = lazy_pattern(f"[{HAN}]")

Voice = Literal["", "asker", "agent"]
MAX_TERMS = 128
_READ = 2_000
_LITERAL_WORDS = 4
"""The most words of a query that looks for the words themselves."""
_EMBEDDED_CHARS = 1_500


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of a question as it is written there, and its terms, all of which a message with the word has.
    `is_name`: it names somebody in the room."""

    text: str
    terms: tuple[str, ...]
    is_name: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A parsed question.

    `words`: its words without stop words and times; none of a dialogue. `literal`: it is a few words, not a question:
    messages that hold them are meant. `begun`: the times among `spans` that are not yet to come. `terms`: the distinct
    terms to look up; `worth`: the weight of each before its rarity is known. `embed`: the texts to embed. `spans`: the
    times it names. `people`: the senders it names, as indices into the room's `sender_ids`. `voice`: the side it is
    about, if people talk with an agent. `only_then`: it asks for nothing but the times, so nothing else may be found.
    """

    terms: tuple[str, ...]
    embed: tuple[str, ...]
    spans: tuple[TimeSpan, ...] = ()
    worth: tuple[float, ...] = ()
    people: tuple[int, ...] = ()
    voice: Voice = ""
    only_then: bool = False
    words: tuple[AskedWord, ...] = ()
    literal: bool = False
    begun: tuple[TimeSpan, ...] = ()


def read_query(
    text: str,
    *,
    facts: MessageFacts,
    spans: Sequence[TimeSpan] = (),
    now: datetime | None = None,
    weights: SearchWeights = WEIGHTS,
) -> SearchQuery:
    """Parse a question to the room of these facts; `spans` are the times that it names.

    Words that name a time are not content, unless the time is later than `now`. In a dialogue the people's own words
    count most, the latest above all, and alone give the vector; times in it are statements, not filters.
    """
    lines = utterances(text)
    begun = [] if lines else [span for span in spans if now is None or span.start <= now]
    content = _without_times(text, begun)
    counts: Mapping[str, float] = _in_dialogue(lines, weights) if lines else Counter(terms(content) + written(content))
    worth: Mapping[str, float] = {
        term: count**weights.repeats * (weights.asking if term in _ASKING else 1) for term, count in counts.items()
    }
    if in_other_script(content):
        worth = _weighed(worth, content, weights)
    if begun and _is_frame(content):
        return SearchQuery(terms=(), embed=(), spans=tuple(begun), only_then=True, begun=tuple(begun))
    words = () if lines else _words(unframed(content), facts)
    owners = map(facts.naming.owner, counts)
    kept = sorted(worth, key=lambda term: -worth[term])[:MAX_TERMS] if len(worth) > MAX_TERMS else list(worth)
    return SearchQuery(
        terms=tuple(kept),
        worth=tuple(worth[term] for term in kept),
        embed=(_own_words(lines) or text,),
        spans=() if lines else tuple(spans),
        people=tuple(sorted({owner for owner in owners if owner is not None})),
        voice="" if lines else _voice(text),
        words=words,
        literal=0 < len(words) <= _LITERAL_WORDS and not (is_question(text) or requests(head(text))),
        begun=tuple(begun),
    )


def _weighed(worth: Mapping[str, float], content: str, weights: SearchWeights) -> Mapping[str, float]:
    """Return the worths with less for what is no whole word, or only frames the question."""
    told = without_grammar(terms(unframed(content))) or worth.keys()
    return {term: value * _share(term, told, weights) for term, value in worth.items()}


def _share(term: str, told: Container[str], weights: SearchWeights) -> float:
    if is_written(term):
        return weights.written
    share = weights.piece if pieces_in(term) == 1 and not is_chinese(term) else 1.0
    return share if term in told else share * weights.framing


def _words(text: str, facts: MessageFacts) -> tuple[AskedWord, ...]:
    """Return the distinct words of a question in order, without stop words; at most as many as it has terms."""
    words: dict[str, tuple[str, ...]] = {}
    for run in _RUNS.findall(text[:_READ]):
        cut = keywords(run) or (run,) if _CHINESE.search(run) else (run,)
        words |= {word: tuple(terms(word)) for word in cut if word.lower() not in ENGLISH}
    owner = facts.naming.owner
    made = (AskedWord(word, its, any(owner(term) is not None for term in its)) for word, its in words.items() if its)
    return tuple(islice(made, MAX_TERMS))


def _without_times(text: str, spans: Sequence[TimeSpan]) -> str:
    """Return the text with a gap in place of each time."""
    kept, end = [], 0
    for span in sorted(spans, key=lambda span: span.position):
        kept.append(text[end : max(end, span.position[0])])
        end = max(end, span.position[1])
    return " ".join([*kept, text[end:]])


def _is_frame(content: str) -> bool:
    """Return True if nothing but general words of questions is left without the times."""
    return all(term in _FRAME for term in terms(_FRAME_HAN.sub(" ", content)))


def _in_dialogue(lines: Sequence[SpokenText], weights: SearchWeights) -> Mapping[str, float]:
    own = {at for at, line in enumerate(lines) if not sounds_like_agent(line.speaker)}
    latest = max(own, default=-1)
    counts: dict[str, float] = {}
    for at, line in enumerate(lines):
        share = weights.partner if at not in own else 1 + weights.latest * (at == latest)
        for term in terms(line.said):
            counts[term] = counts.get(term, 0.0) + share
    return counts


def _own_words(lines: Sequence[SpokenText]) -> str:
    return " ".join(line.said for line in lines if not sounds_like_agent(line.speaker))[-_EMBEDDED_CHARS:]


def _voice(text: str) -> Voice:
    """Return the side that is meant first, after a polite "can you tell me"."""
    request = _REQUEST.match(text)
    start = request.end() if request else 0
    asker, other = _SPEAKER.search(text, start), _SPOKEN_TO.search(text, start)
    if asker is None and other is None:
        return ""
    return "agent" if asker is None or (other is not None and other.start() < asker.start()) else "asker"


def agent_messages(facts: MessageFacts) -> NDArray[np.bool_]:
    """Return True for an agent's messages: by role or, since many exports have no roles, by the sender's name."""
    bots = facts.naming.agents
    is_agent: NDArray[np.bool_] = facts.roles == ROLES.index(Role.ASSISTANT)
    return is_agent | np.isin(facts.senders, bots) if bots else is_agent


WORDS_MODEL = EmbeddingModel(name="words-3", dimensions=0)
"""Change the name whenever `indexed_words` gives other words for the same message; the lexical index is then rebuilt.
A migration as `migrations/words.py` names the earlier reading in databases without a state of it."""


_MAX_WORD = 128
# A character that is spelled as its number.
_UNSAFE = lazy_pattern(r"[^a-z0-9\x80-\ud7ff\ue000-\U0010ffff]")


def spell(word: str) -> str:
    """Return the word in safe characters, different for different words; '' for a word that is never indexed: an empty
    one, or more than 128 characters."""
    return _UNSAFE.sub(lambda match: f"_{ord(match[0]):02x}_", word) if len(word) <= _MAX_WORD else ""


SPELLED = Memo(spell)
"""The same, by word."""


def indexed_words(message: Message) -> list[str]:
    """Return the words of a message's index entry, repeats kept."""
    text, told = message.text, found_words(message)
    words = terms(message.sender_name or message.sender_id) + terms(text) + terms(told)
    return words if text.isascii() and told.isascii() else words + written(text) + written(told)


def passage(message: Message) -> str:
    """Return the text to embed for the message; empty if there is none."""
    text = " ".join(part for part in (message.text.strip(), caption_of(message).strip()) if part)
    return f"{message.sender_name or message.sender_id}: {text}" if text else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The matches of the question's terms, one row each: `rows` (index into the room's facts), `terms` (index into
    `worth`), `values` (quality of the match, below 1). `worth` of each term: its weight in the question times its
    rarity."""

    rows: Ints
    terms: Ints
    values: Floats
    worth: Floats

    def scores(self, size: int) -> Floats:
        """Return the score of each of the room's `size` messages by its own words."""
        return np.bincount(self.rows, self.worth[self.terms] * self.values, minlength=size).astype(float)

    def shares(self, size: int) -> Floats:
        """Return the share of the question's worth that each of the room's `size` messages matches."""
        worth = np.bincount(self.rows, self.worth[self.terms], minlength=size)
        return worth / max(float(self.worth.sum()), 1e-9)

    def table(self, rows: Ints, size: int) -> Floats:
        """Return the values as a matrix: a row for each of these rows, a column for each term."""
        table = np.zeros((rows.size, self.worth.size))
        if rows.size == size:
            table[self.rows, self.terms] = self.values
            return table
        line = np.full(size, -1)
        line[rows] = np.arange(rows.size)
        places = line[self.rows]
        kept = places >= 0
        table[places[kept], self.terms[kept]] = self.values[kept]
        return table


def matches(query: SearchQuery, postings: Postings, facts: MessageFacts, weights: SearchWeights) -> Matches:
    """Return the matches of a question in a room, without messages that the facts do not contain."""
    sizes = postings.ends.copy()
    sizes[1:] -= postings.ends[:-1]
    count = max(postings.room.messages, 1)
    mean = max(postings.room.words / count, 1.0)
    given = dict(zip(query.terms, query.worth, strict=True))
    worth = np.array([given.get(word, 0.0) for word in postings.words]) * _rarity(sizes, count)
    rows, counts = rows_of(facts, postings.arrivals), postings.counts
    terms = np.repeat(np.arange(sizes.size), sizes)
    known = rows >= 0
    if not known.all():
        rows, terms, counts = rows[known], terms[known], counts[known]
    length = 1 - weights.length_norm + weights.length_norm * facts.lengths[rows] / mean
    values = counts / (counts + weights.saturation * length)
    return Matches(rows=rows, terms=terms, values=values, worth=worth)


def _rarity(having: NDArray[np.int64], count: int) -> Floats:
    return np.log1p((np.maximum(count - having, 0) + 0.5) / (having + 0.5))


def rows_of(facts: MessageFacts, arrivals: Ints) -> Ints:
    """Return the index of each arrival in the columns; -1 for those that are absent."""
    known = facts.arrivals
    if not known.size:
        return np.full(arrivals.size, -1)
    if known[-1] - known[0] + 1 == known.size:
        rows = arrivals - known[0]
        there = rows.view(np.uint64) < known.size  # a negative number is a large one here
        return rows if there.all() else np.where(there, rows, -1)
    rows = np.searchsorted(known, arrivals)
    rows[rows == known.size] = 0
    return np.where(known[rows] == arrivals, rows, -1)


_TRACE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """The result of a vector search: `similarity` and `nearness` have a value for every message of the room, 0 for
    those that were not found."""

    similarity: Floats
    nearness: Floats


def nearness(dense: Sequence[Nearest], facts: MessageFacts) -> Near:
    """Return each message's best similarity and mean nearness over several lists.

    Nearness is the distance of a similarity above the least one found, in quarters of their standard deviation; the
    nearest reach about 1 to 2.
    """
    size = facts.arrivals.size
    similarity, near = np.zeros(size), np.zeros(size)
    for nearest in dense:
        rows, similar = rows_of(facts, nearest.numbers), nearest.similarities
        known = rows >= 0
        if not known.all():
            rows, similar = rows[known], similar[known]
        similarity[rows] = np.maximum(similarity[rows], similar)
        near[rows] += _spread(similar) / len(dense)
    return Near(similarity=similarity, nearness=near)


def _spread(similarities: Floats) -> Floats:
    """Return the spread, with a trace of the similarity itself, so that a found message never counts 0."""
    if not similarities.size:
        return similarities
    deviation = float(similarities.std())
    above = (similarities - similarities.min()) / (4 * deviation) if deviation > 1e-9 else np.zeros(similarities.size)
    return above + _TRACE * similarities
