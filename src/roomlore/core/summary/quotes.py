"""Quotations and brackets, which a sentence chosen for a summary must not leave open."""

import re

from roomlore.core.text import sentences

_LONGEST = 600
_MOST = 6
_PAIRS = tuple(
    (re.compile(opening), re.compile(closing))
    for opening, closing in (
        ("“", "”"),
        ("「", "」"),
        ("『", "』"),
        ("《", "》"),
        ("【", "】"),
        (r"(?<![:;=-])[(（]", r"(?<![:;=-])[)）]"),
        (r"\[", r"\]"),
    )
)
# An apostrophe closes nothing, so of single quotation marks only those that open one are asked for their end.
_SINGLE = re.compile(r"(?<![^\s(“\"])['‘](?=[^\W\d])"), re.compile(r"(?<=\S)['’](?!\w)")
# What only goes on where a quotation has ended.
_GOES_ON = re.compile(r"[a-z，、]|就|便|才|然后|然後")


def unsplit(text: str) -> list[str]:
    """The sentences of a text, those within one quotation or bracket together where it ends on the same line, within
    six sentences and 600 characters."""
    spans = _spans(text)
    found, at = [], 0
    while at < len(spans):
        upto = _whole(text, spans, at)
        found.append(text[spans[at][0] : spans[upto][1]])
        at = upto + 1
    return found


def torn(part: str, whole: str) -> bool:
    """Whether a part of a sentence has a half of a quotation or bracket that the sentence has both halves of."""
    return not _even(part) and _even(whole)


def _spans(text: str) -> list[tuple[int, int]]:
    found, at = [], 0
    for sentence in sentences(text):
        start = text.index(sentence, at)
        at = start + len(sentence)
        found.append((start, at))
    return found


def _whole(text: str, spans: list[tuple[int, int]], first: int) -> int:
    """The last of the sentences that what opens in the first holds together; the first where that has no end."""
    start, whole = spans[first][0], first
    for last, (_, end) in enumerate(spans[first : first + _MOST], first):
        if end - start > _LONGEST or "\n" in text[start:end]:
            break
        if _opens(text[start:end]):
            continue
        whole = last
        if last in (first, len(spans) - 1) or not _GOES_ON.match(text, spans[last + 1][0]):
            break
    return whole


def _opens(text: str) -> bool:
    return any(opened > closed for opened, closed in _marks(text))


def _even(text: str) -> bool:
    *pairs, single = _marks(text)
    return all(opened == closed for opened, closed in pairs) and single[0] <= single[1]


def _marks(text: str) -> list[tuple[int, int]]:
    """How often each kind is opened and closed; the single quotation marks come last."""
    found = [(len(opening.findall(text)), len(closing.findall(text))) for opening, closing in (*_PAIRS, _SINGLE)]
    return [(text.count('"') % 2, 0), *found]
