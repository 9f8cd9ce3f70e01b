"""The words of a question in a text, and the part of a long text that has most of them: for a terminal and a page."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from roomlore.core.folding import UNSPACED
from roomlore.core.text import HAN, HANGUL, KANA, LETTER, pieces, terms, truncate

_RUN = re.compile(rf"(?P<word>{LETTER}+)|[{HAN}]+|[{KANA}]+|[{HANGUL}]+|[{UNSPACED}]+")
_START = re.compile(rf"(?<=\s)\S|[{HAN}{KANA}{HANGUL}]")


class TextSpan(NamedTuple):
    """The characters text[at:to]."""

    at: int
    to: int


def matches(text: str, query: str) -> list[TextSpan]:
    """Return the words of the text that are in the query, in any form; Chinese by pairs of characters. In order,
    without overlaps."""
    words, wanted = _wanted(query)
    spans: list[TextSpan] = []
    for run in _RUN.finditer(text):
        if run["word"] is None:
            spans += (TextSpan(run.start() + at, run.start() + to) for at, to in _in_run(run[0], wanted))
        elif words.intersection(terms(run[0])):
            spans.append(TextSpan(*run.span()))
    return spans


def excerpt(text: str, marks: Sequence[TextSpan], longest: int) -> tuple[str, list[TextSpan]]:
    """Return the text cut to `longest` graphemes where most marks are, with `…` at each end that was cut, and the marks
    in it."""
    if len(text) <= longest:
        return text, list(marks)
    start = _start(text, marks, longest)
    cut = truncate(text[start:], longest)
    before, after = "…" if start else "", "…" if start + len(cut) < len(text) else ""
    moved = [TextSpan(at - start + len(before), to - start + len(before)) for at, to in marks if at >= start]
    return f"{before}{cut}{after}", [span for span in moved if span.to <= len(before) + len(cut)]


def _wanted(query: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what to look for: stems, and pairs of Chinese characters that are not both stop words; a single character
    if it stands alone in the query."""
    runs = [run[0] for run in _RUN.finditer(query) if run["word"] is None]
    pairs = {first + second for run in runs for first, second in pairwise(pieces(run))}
    telling = {pair for pair in pairs if len(terms(pair)) > 1}
    return frozenset(terms(query)), frozenset(telling | {run for run in runs if len(pieces(run)) == 1})


def _in_run(run: str, wanted: frozenset[str]) -> list[TextSpan]:
    its = pieces(run)
    starts = [0, *accumulate(map(len, its))]
    hit = [False] * (len(its) + 1)
    for at, piece in enumerate(its):
        if piece in wanted:
            hit[at] = True
        if "".join(its[at : at + 2]) in wanted:
            hit[at] = hit[at + 1] = True
    edges = [at for at in range(len(its) + 1) if (hit[at] and at < len(its)) != (at > 0 and hit[at - 1])]
    return [TextSpan(starts[at], starts[to]) for at, to in zip(edges[::2], edges[1::2], strict=True)]


def _start(text: str, marks: Sequence[TextSpan], longest: int) -> int:
    """Return the start of the window of `longest` characters with most marks, and some text before the first of
    them."""
    if not marks or marks[-1].to <= longest:
        return 0
    starts = [mark.at for mark in marks]
    lead = longest // 4
    _, best = max((bisect_left(starts, at + longest - lead) - place, -at) for place, at in enumerate(starts))
    first = -best
    near = _START.search(text, max(0, first - lead), first)
    start = near.start() if near else first
    return 0 if first <= lead else min(start, max(0, len(text) - longest))
