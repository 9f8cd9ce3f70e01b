"""The terms by which messages are searched: one analysis for what is indexed and for what is asked.

English words are reduced to their stems (Snowball), which `words` does only lightly; Chinese gives its single
characters and every pair of neighbours, since a segmenter cuts question and message differently. Only words that
carry no meaning at all are dropped: rarity weighs the rest. Measured in docs/explanation/search.md.
"""

import re
from functools import lru_cache

import Stemmer

from roomlore.core.text import HAN, HANGUL, KANA, LETTER, head

_MAX_TERM = 64
_RUN = re.compile(
    rf"(?P<latin>{LETTER}+(?:['’]{LETTER}+)*)|(?P<han>[{HAN}]+)|(?P<syllables>[{KANA}]+|[{HANGUL}]+)"
    r"|(?P<emoji>[\u2600-\u27bf\U0001f300-\U0001f3fa\U0001f400-\U0001faff])"
)
_ASCII = re.compile(r"[a-z0-9_]+(?:'[a-z0-9_]+)*")
_CONTRACTED = re.compile(r"['’](?:s|t|re|ve|ll|d|m)$")

_EMPTY_WORDS = """
a about ain all also am an and any are aren as at be been being but by can could couldn d did didn do does doesn doing
don for from had hadn has hasn have haven having he her here hers him his how i if in into is isn it its just let ll m
me mine my no not of on onto or our ours re s shall she should so some t than that the their theirs them then there
these they this those to too up upon us ve was wasn we were weren what when where which who whom whose why will with
won would wouldn yes you your yours
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_EMPTY_HAN = frozenset("的了是我你您他她它在有和与與就不都也很到说說要去会會着著没沒这這那么麼吗嗎呢吧啊呀哦嗯")


def terms(text: str) -> list[str]:
    """The terms of a text in order, repeats kept. Never raises; reads the first 20,000 characters."""
    text = head(text)
    found: list[str] = []
    if text.isascii():
        for word in _ASCII.findall(text):
            found += _latin(word)
        return found
    for run in _RUN.finditer(text):
        kind = run.lastgroup
        if kind == "latin":
            found += _latin(run[0])
        elif kind == "emoji":
            found.append(run[0])
        else:
            found += _characters(run[0])
    return found


@lru_cache(maxsize=1 << 15)
def _latin(run: str) -> tuple[str, ...]:
    parts = re.split("['’_]+", _CONTRACTED.sub("", run))
    stem = Stemmer.Stemmer("english").stemWord  # made anew, since one stemmer must not serve two threads
    return tuple(stem(part[:_MAX_TERM]) for part in parts if part and part not in _EMPTY)


def _characters(run: str) -> list[str]:
    singles = [character for character in run if character not in _EMPTY_HAN]
    return singles + [run[at : at + 2] for at in range(len(run) - 1)]
