"""What each ingredient of ranking counts for: one setting for every room and language.

The numbers were found by coordinate search on six sets of questions, each checked on the set that was left out; see
docs/explanation/search.md. An ingredient is off at the value named with it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchWeights:
    """Words: `saturation` (k1) and `length_norm` (b, off at 0) are BM25's; `repeats` is the power of a word's count in
    the question (1: as it stands); `asking` is the worth of words that speak of the request ("summarize", "名字"),
    beside 1 for others (off at 1); `partner` is the worth of what the other side says in a dialogue, and `latest` what
    its people's last utterance counts more (off at 1 and 0).

    Neighbours: the share of a neighbour's words, those the message lacks, that count for it: `asked` where the message
    follows a question by somebody else, `after` of the next message, `beyond` of those two away; never over a pause of
    `pause_hours` (off at 0).

    Factors on the whole, each 1 + weight (off at 0): `speaker` for messages by a person whom the question names,
    `voice` for the side meant by "I" or "you" where an agent is in the room, `time` within the time asked for.
    `time_alone`: what fitting in time counts without any match. `question` and `short` are taken off questions and
    messages of a few words.

    Echoes, questions that repeat the query: a message counts as one from a likeness of `echo_from` on, fully from
    `echo_to` on; `answer` is the share of its relevance that goes to what answers it best (off at 0), `next_answers`
    how likely the next message by somebody else answers it whatever its link says, and `next_fades` what is left of
    that with each message further on.

    `meaning`: the weight of the vectors' nearness, beside 1 - `meaning` for words.
    """

    saturation: float = 1.2
    length_norm: float = 0.85
    repeats: float = 0.8
    asking: float = 0.6
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
