"""Sentences that must not be lost: statements about safety, and how much a summary needs a sentence (doses, orders to
stop or avoid, decisions, corrections, dates)."""

import itertools
from collections.abc import Callable, Iterator, Sequence

from roomlore.core import lexicon
from roomlore.core.dates.languages import names_date, names_time
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import HAN, HANGUL, KANA, READ_LIMIT, asks, fold, greets, head, rarity, roots, sentences

CATEGORY = "safety"
PINNED = "pinned"
"""The tag or category of a fact that is always shown first."""

# Declared or recognised: an allergy, an intolerance, a grave condition, medication that is taken, a prohibition.
_GRAVE = lexicon.pattern("grave")
_TAKEN = lexicon.pattern("taken")
_DOSE = lexicon.pattern("dose")
_FORBIDDEN = lexicon.pattern("forbidden")
_STOP = lexicon.pattern("stop")
_CANCELLED = lexicon.pattern("cancellation")
_DECIDED = lexicon.pattern("decided")
_SUPPOSED = lexicon.pattern("supposition")
_ASKING_ON = lexicon.pattern("question_part")
# The end of a clause: a mark, or a Japanese or Korean ending that leads over to a question.
_CLAUSE_END = lazy_pattern(r"[,;—–](?:\s+|(?=[^\x00-\x7f]))|、|(?<=[すただるい])(?:が|けど|ので)|(?<=[는은인]데)\s")
# Words enough for a question of its own, rather than one for confirmation, such as "isn't she?".
_OWN_QUESTION = lazy_pattern(rf"(?<!\S)\S++\s++\S++\s++\S|(?:[{HAN}{KANA}{HANGUL}]\s?){{4}}")


def is_declared(category: str) -> bool:
    """Return True if the category, as a caller gave it, says that a fact must not be missed."""
    return category.strip().casefold() == CATEGORY


def is_safety(text: str) -> bool:
    """Return True if a statement says what must not be missed: an allergy, medication, what must never be done."""
    return _states(text, _concerns_safety)


def is_stop(text: str) -> bool:
    """Return True if a text orders to stop, avoid or undo something, or says that something is cancelled."""
    return _states(text, _stops)


def is_decision(text: str) -> bool:
    """Return True if a text states what was decided, or what holds from now on."""
    return _states(text, _decides)


def _states(text: str, judge: Callable[[str], bool]) -> bool:
    """Return True if a text states what a judge finds in it folded, and does not only ask for it."""
    folded = head(text)
    return judge(folded) and (not asks(folded) or any(map(judge, _statements(text[:READ_LIMIT]))))


def _statements(text: str) -> Iterator[str]:
    """Yield, folded, the sentences of a text that do not ask, and such clauses of one that does, unless it only asks
    for confirmation."""
    for sentence in map(fold, sentences(text)):
        if not asks(sentence):
            yield sentence
            continue
        *clauses, last = _CLAUSE_END.split(sentence)
        if clauses and _OWN_QUESTION.search(last):
            yield from (clause for clause in (*clauses, last) if not _is_open(clause))


def _is_open(clause: str) -> bool:
    """Return True if a clause of a question states nothing."""
    return asks(clause) or bool(_SUPPOSED.search(clause) or _ASKING_ON.search(clause))


def _concerns_safety(folded: str) -> bool:
    return is_grave(folded) or is_medication(folded) or forbids(folded)


def _stops(folded: str) -> bool:
    return bool(_STOP.search(folded) or _CANCELLED.search(folded))


def _decides(folded: str) -> bool:
    return _DECIDED.search(folded) is not None


def is_grave(folded: str) -> bool:
    """Return True if a folded text names an allergy, an intolerance or a condition that is dangerous to forget."""
    return _GRAVE.search(folded) is not None


def is_medication(folded: str) -> bool:
    """Return True if a folded text says which medicine somebody takes, or a dose."""
    return bool(_TAKEN.search(folded) or _DOSE.search(folded))


def forbids(folded: str) -> bool:
    """Return True if a folded text says what must never be done."""
    return _FORBIDDEN.search(folded) is not None


SAFETY, DECISION, DATE = 2.5, 0.3, 0.05
"""Log-odds of being needed, beside those of any other sentence."""
FACT, WHOLE, _MOST_FACTS = 1.4, 1.5, 3
"""Log-odds for each kind of fact that who takes over needs, for one that makes no sense without its whole sentence,
and the most kinds that count."""
_ENTIRE = frozenset(("owner", "blocked", "dropped", "measured"))

_AMOUNT = lexicon.pattern("amount_taken")
_CHANGED = lexicon.pattern("corrected")
_WHEN = lexicon.pattern("when")
_FACT_HINTS = lexicon.words("fact_hint")
_ASCII_FACT_HINTS = frozenset(filter(str.isascii, _FACT_HINTS))
# What somebody who takes over needs, by its kind.
_FACTS = lazy_pattern(
    "|".join(
        f"(?P<{kind}>{lexicon.alternatives(f'fact_{kind}')})"
        for kind in ("money", "date", "owner", "place", "blocked", "dropped", "measured")
    )
)
# A question mark, or the particle that ends a Chinese question.
_QUESTION = lazy_pattern(r"[?？]|(?:[吗嗎呢]|怎[么麼][办辦])[\s。！]*\Z|要不要")
_COVERED = 0.5
"""The share of a sentence's rare words that the summary must have to stand for it."""
# A number, with its point or colon.
_NUMBER = lazy_pattern(r"\d+(?:[.:]\d+)*")


def importance(text: str) -> float:
    """Return the log-odds by which a sentence must not be lost; 0 if nothing in it says so."""
    folded = head(text)
    if _QUESTION.search(folded):
        return 0.0
    if _concerns_safety(folded) or _STOP.search(folded) or _AMOUNT.search(folded):
        return SAFETY
    if asks(folded) or greets(folded):
        return 0.0
    hints = _ASCII_FACT_HINTS if folded.isascii() else _FACT_HINTS
    told = _NUMBER.search(folded) or any(hint in folded for hint in hints)
    kinds = {match.lastgroup for match in _FACTS.finditer(folded)} if told else set[str | None]()
    kinds |= {"date"} if told and names_date(folded) else set()
    facts = WHOLE if kinds & _ENTIRE else FACT if kinds else 0.0
    facts += FACT * (min(len(kinds), _MOST_FACTS) - 1) if kinds else 0.0
    if _DECIDED.search(folded) or _CHANGED.search(folded):
        return DECISION + facts
    return facts or (DATE if _WHEN.search(folded) or names_time(folded) else 0.0)


class Coverage:
    """The sentences that a summary stands for. `among`: the sentences by which the rarity of a word is known."""

    def __init__(self, summary: Sequence[str], among: Sequence[str]) -> None:
        held = [_words_of(sentence) for sentence in summary]
        pairs = [first | second for first, second in itertools.pairwise(held)]
        self._held = [*held, *pairs]
        self._having: dict[str, int] = {}
        for sentence in among:
            for word in _words_of(sentence):
                self._having[word] = self._having.get(word, 0) + 1
        self._sentences = max(1, len(among))

    def add(self, sentence: str) -> None:
        """Count a sentence as one of the summary."""
        self._held.append(_words_of(sentence))

    def __contains__(self, sentence: object) -> bool:
        """Return True if a sentence of the summary, or two neighbours, has the numbers and most rare words."""
        words = _words_of(str(sentence))
        needed = {word for word in words if _NUMBER.fullmatch(word)}
        whole = self._weight(words)
        return any(
            needed <= held_words and self._weight(words & held_words) >= _COVERED * whole for held_words in self._held
        )

    def _weight(self, words: frozenset[str]) -> float:
        return sum(rarity(self._having.get(word, 0), self._sentences) for word in words)


def _words_of(sentence: str) -> frozenset[str]:
    return frozenset((*roots(sentence), *_NUMBER.findall(head(sentence))))
