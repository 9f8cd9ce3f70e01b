"""The readings of a sentence: whole, without what it opens with, and its clauses that can stand alone."""

import re

import regex

from roomlore.core.summary.cues import CHANGED
from roomlore.core.summary.quotes import torn
from roomlore.core.text import HAN, language, truncate

LONGEST = 600
_MOST_CLAUSES = 8
_PERSON = r"(?:i|we|he|she|it|they|you|my|our|there|this|that|his|her|their)\b"
_LINK = r"(?:and|but|so|because|while|which|where|when|who|since|though|although|as|plus|or)"
_CUT = re.compile(
    r"(?<=[^\s\d];)\s+|\s+[-–—]+\s+|(?<=[，；])"
    rf"|(?<=[^\s\d],)\s+(?=(?:{_LINK}\s)?{_PERSON})"
    r"|(?<=[^\s\d],)\s+(?=(?:which|where|who|including|especially|with|but|because|so|while|since|although|though)\s)"
    rf"|\s+(?=(?:so that|because|but|so|while|which)\s{_PERSON})",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r"(?:and|but|so|or|plus|because|since|then)\s+|而且|然后|然後|但是|所以|不过|不過|并且|因为|因為|但|而",
    re.IGNORECASE,
)
# What is said under a condition is not said without it.
_CONDITION = re.compile(
    r"\b(?:if|unless|even though|as long as|otherwise)\b"
    r"|如果|要是|除非|假如|假设|若|只要|只有|即使|否则|不然|無論|无论",
    re.IGNORECASE,
)
# `bare`: a number without a unit, read whole so that it is read once.
# What a sentence must not lose, unless it is long: a negation, an allergy, a number with its unit, a change.
_UNITS = (
    r"(?:[mk]?g|m?l|[ckm]?m|lbs?|oz|[gmk]b|[ap]\.?m|k|miles?|hours?|hrs?|min(?:ute)?s?|days?|weeks?|months?|years?|euros?"
    r"|dollars?|pounds?|tablets?|pills?)\b"
)
_KEPT = re.compile(
    r"\b(?:not|never|no|cannot|without|except|instead|rather than|neither|nor|dont|[a-z]+n['’]t)\b"
    r"|不(?![错錯过過仅僅但])|[没沒勿]|(?<![特个個分区區性级級])[别別](?![人的名墅致])|千万|千萬|[过過]敏|\ballerg"
    rf"|[€$£¥]\s?\d|\d[\d.,:/]*+(?:\s?(?:[%°{HAN}]|{_UNITS})|(?P<bare>))"
    r"|(?:(?<![一二两兩三四五六七八九十百千万萬半])|(?<=千[万萬]))[一二两兩三四五六七八九十百千万萬半]++(?:[元块塊点點号號日月年岁歲斤克米平天周次片粒度]|公[里斤]|毫克|分[钟鐘]|小[时時])"
    rf"|{CHANGED.pattern}",
    re.IGNORECASE,
)
_LONG = 240
_STANDS = re.compile(rf"(?i:{_PERSON})|[A-Z《“{HAN}]")
_OPENING = re.compile(
    r"(?:(?:wow|yeah|yep|yup|oh|hey|hi|hello|thanks|thank you|haha|lol|aww?|well|sure|ok|okay|um+|uh+|also|plus|totally"
    r"|definitely|absolutely|certainly|anyway|btw|by the way|so|and|but)\b[,!.\s–-]*"
    r"|(?:嗯+|哦|啊|哈+|好的|是的|对了|對了|当然|當然|而且|然后|然後|不过|不過|但是|所以|另外|其实|其實|嗨)[，,！。\s]+)+",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\A(?:[-*•#>|]+|\d{1,3}[.)、])\s+")
_LOOSE = regex.compile(r"(?:[\s,，;；:：、~～–—-]|(?=[\u2600-\u27bf\U0001f300-\U0001faff])\X)++")
_HAN = re.compile(f"[{HAN}]")
_MARKS = tuple(".!?。！？…")
_ENDS, _CLOSING = (*_MARKS, "；", ";"), "”’」』）)]\"'"


def readings(sentence: str) -> list[str]:
    """What may stand for a sentence, the whole first; each ends with a mark that `sentences` splits at. Empty where
    nothing but emoji or punctuation is left."""
    sentence = truncate(_BULLET.sub("", sentence).replace("**", ""), LONGEST)
    found = dict.fromkeys((closed(sentence), *_parts(_unopened(sentence))))
    return [reading for reading in found if reading]


def closed(text: str) -> str:
    """The text with a full stop unless it has an end of its own; trailing emoji go."""
    if text.endswith(_MARKS):
        return text
    tail = next((run.start() for run in _LOOSE.finditer(text) if run.end() == len(text)), None)
    text = text[:tail]
    if not text or text.rstrip(_CLOSING).endswith(_ENDS):
        return text
    return text + ("。" if language(text) == "zh" else ".")


def _unopened(sentence: str) -> str:
    opening = _OPENING.match(sentence)
    return _capital(sentence[opening.end() :]) if opening else sentence


def _parts(sentence: str) -> list[str]:
    """The sentence and the runs of its clauses that begin as a sentence may."""
    cuts = [found.span() for found in _CUT.finditer(sentence)]
    if len(cuts) >= _MOST_CLAUSES or _CONDITION.search(sentence):
        return [closed(sentence)]
    starts = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(sentence)]
    kept_from, kept_to = _kept(sentence)
    found = [closed(sentence)]
    for first, start in enumerate(starts):
        opening = _JOINT.match(sentence, start) if first else None
        start = opening.end() if opening else start
        if start <= kept_from and (not first or _STANDS.match(sentence, start)):
            parts = [sentence[start:end] for end in ends[first:] if end >= kept_to]
            found += [closed(_capital(part)) for part in parts if not torn(part, sentence)]
    return found


def _kept(sentence: str) -> tuple[int, int]:
    """From where to where at least a part must reach."""
    spans = [found.span() for found in _KEPT.finditer(sentence) if found["bare"] is None]
    if not spans or len(sentence) + 2 * len(_HAN.findall(sentence)) > _LONG:
        return len(sentence), 0
    return spans[0][0], spans[-1][1]


def _capital(text: str) -> str:
    return text[0].upper() + text[1:] if text[:2].isascii() and text else text
