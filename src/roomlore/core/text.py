"""Reading text, Chinese and English alike: words, keywords, sentences, graphemes, and what kind of utterance it is.

`words`, `keywords` and the `is_...` questions read the first 20,000 characters only, so that their cost has a bound;
`sentences`, `graphemes` and `truncate` read everything in linear time. No function here raises on any string.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal

import regex
import rjieba

from roomlore.core.stop_words import CHINESE, ENGLISH

READ_LIMIT = 20_000
MAX_KEYWORDS = 32
_MAX_TOKEN = 128

HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = r"\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
HANGUL = r"\u1100-\u11ff\u3131-\u318e\uac00-\ud7af"
# Letters, digits, _ and the vowel signs of Indic and Thai scripts, which \w leaves out.
LETTER = rf"(?:[^\W{HAN}{KANA}{HANGUL}]|[\u0300-\u036f\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e])"
_TOKEN = re.compile(
    rf"(?P<url>(?:https?|ftp)://[^\s<>\"'|{HAN}]+)"
    rf"|(?P<latin>{LETTER}+(?:(?:::|->|['’./:\\@=+#&~-]){LETTER}+)*(?:\+\+|\#)?)"
    rf"|(?P<han>[{HAN}]+)"
    rf"|(?P<syllables>[{KANA}]+|[{HANGUL}]+)"
    r"|(?P<emoji>[\u2600-\u27bf\U0001f1e6-\U0001f1ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff])"
)
_PART = re.compile(rf"(?:(?!_){LETTER})+")
_CONTRACTION = re.compile(r"['’](?:s|re|ve|ll|d|m)$|\A.*n['’]t$")
_URL_HOST = re.compile(r"[a-z]+://(?:[^/@\s]*@)?(?:www\.)?([^/:?#\s]+)")
_MARKS = regex.compile(r"\p{M}{32,}")

_segmenter = rjieba.Jieba()


def fold(text: str) -> str:
    """NFKC and case-folded: the form in which names, keywords and words are compared."""
    if text.isascii():
        return text.lower()
    # Unicode normalisation sorts each run of combining marks in quadratic time, so an absurd run is cut first.
    return unicodedata.normalize("NFKC", _MARKS.sub(lambda run: run[0][:32], text)).casefold()


def head(text: str) -> str:
    """The part of a text that is analysed, folded."""
    return fold(text[:READ_LIMIT])[: 2 * READ_LIMIT]


def segment(run: str) -> list[str]:
    """A run of Chinese characters cut into words."""
    return list(_segmenter.cut(run))


def words(text: str) -> list[str]:
    """The words of a text in order, repeats kept, for search and similarity.

    Folded; English lightly stemmed, stop words of both languages dropped; a technical token, file name, version or URL
    stands whole and is followed by its parts; Chinese words are followed by nothing but preceded by the shorter words
    inside them, runs of single characters also give pairs; emoji stand for themselves.
    """
    found: list[str] = []
    for match in _TOKEN.finditer(head(text)):
        kind, token = match.lastgroup, match.group()
        if kind == "latin":
            found += _latin_words(token)
        elif kind == "han":
            found += _han_words(token)
        elif kind == "syllables":
            found += _syllable_words(token)
        elif kind == "url":
            found += _technical_words(token.split("://", 1)[1].rstrip(".,;:!?)]}/"))
        else:
            found.append(token)
    return found


def keywords(text: str) -> tuple[str, ...]:
    """Up to 32 distinct keywords in order of appearance.

    English words keep their folded surface form except that plurals become singular, so that the same word is found
    again and still reads well; technical tokens stay whole; a URL gives its host; Chinese words come as segmented.
    Stop words of both languages, lone digits and emoji are left out.
    """
    found: dict[str, None] = {}
    for match in _TOKEN.finditer(head(text)):
        for keyword in _keywords_of(match.lastgroup, match.group()):
            found[keyword] = None
        if len(found) >= MAX_KEYWORDS:
            break
    return tuple(islice(found, MAX_KEYWORDS))


def _keywords_of(kind: str | None, token: str) -> Sequence[str]:
    if kind == "latin":
        return _latin_keyword(token)
    if kind == "han":
        return [word for word in segment(token) if word not in CHINESE]
    if kind == "syllables":
        return [token[:_MAX_TOKEN]] if len(token) > 1 else []
    if kind == "url":
        host = _URL_HOST.match(token)
        return [host[1]] if host else []
    return []


@lru_cache(maxsize=1 << 15)
def _latin_keyword(token: str) -> tuple[str, ...]:
    if not token.isalnum():
        token = _CONTRACTION.sub("", token.strip("_"))
    if not 1 < len(token) <= _MAX_TOKEN or token in ENGLISH or (token.isdigit() and len(token) < 3):
        return ()
    if token.isalnum():
        token = singular(token)
        return () if token in ENGLISH else (token,)
    return (token,) if any(part not in ENGLISH for part in _PART.findall(token)) else ()


@lru_cache(maxsize=1 << 15)
def _latin_words(token: str) -> tuple[str, ...]:
    if token.isalnum():
        return _english(token)
    plain = _CONTRACTION.sub("", token.strip("_"))
    return _english(plain) if plain.isalnum() else tuple(_technical_words(plain))


def _technical_words(token: str) -> list[str]:
    if token in ENGLISH:
        return []
    parts = [part for part in _PART.findall(token) if part not in ENGLISH]
    whole = [token] if parts and parts != [token] and len(token) <= _MAX_TOKEN else []
    return whole + [stem(part)[:_MAX_TOKEN] for part in parts if len(part) > 1]


def _english(token: str) -> tuple[str, ...]:
    return () if token in ENGLISH else (stem(token)[:_MAX_TOKEN],)


def _han_words(run: str) -> Iterator[str]:
    single = ""
    for word in _segmenter.cut_for_search(run):
        if word not in CHINESE:
            yield word
            if single and len(word) == 1:
                yield single + word
        single = word if len(word) == 1 else ""


def _syllable_words(run: str) -> Iterator[str]:
    yield run[:_MAX_TOKEN]
    if len(run) > 2:
        yield from (run[at : at + 2] for at in range(len(run) - 1))


def singular(word: str) -> str:
    """The singular of a regular English plural; any other word unchanged."""
    if len(word) < 4 or word[-1] != "s" or not word.isascii() or not word.isalpha() or word[-2] in "sui":
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")) and not word.endswith("aches"):
        return word[:-2]
    return word[:-1]


def stem(word: str) -> str:
    """A light English stem: plural, -ing, -ed and a final -e go; words with other letters or digits stay."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = singular(word)
    if word.endswith("ing"):
        word = _without_suffix(word, word[:-3])
    elif word.endswith("ed") and not word.endswith("eed"):
        word = _without_suffix(word, word[:-2])
    return word[:-1] if len(word) > 4 and word[-1] == "e" and word[-2] != "e" else word


def _without_suffix(word: str, rest: str) -> str:
    if len(rest) < 3 or not any(letter in "aeiouy" for letter in rest):
        return word
    if len(rest) == 3:
        closed = rest[0] not in "aeiou" and rest[1] in "aeiouy" and rest[2] not in "aeiouwxy"
        return rest + "e" if closed else rest
    return rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "aeiouslz" else rest


# A run of stops is tried from its beginning alone: no later stop of it can do better.
_SENTENCE_END = re.compile(
    r"[。！？；…]+[”’」』）)\"']*|(?<![.!?])[.!?]++[”’)\]\"']*+(?=\s|$)|\n+",
)
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|mr|mrs|ms|dr|prof|vs|cf|no|approx|st|[a-z])\.$", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, stripped, each with its closing punctuation; blank ones are left out.

    A full stop ends a sentence only before white space or the end, so versions, file names and URLs stay whole.
    """
    found = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end[0] == "." and _ABBREVIATION.search(text, max(start, end.end() - 10), end.end()):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


# Flags are paired here: for each of a run of them `\X` would count back to the run's beginning.
GRAPHEME = regex.compile(r"[\U0001f1e6-\U0001f1ff]{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*+|\X")
# One code point is one grapheme among these: printable ASCII, kana without combining marks, Han, full-width forms.
_SIMPLE = re.compile(
    r"[\n -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u3000-\u3029\u3041-\u3096\u30a0-\u30ff\u3400-\u9fff\uff01-\uff9d]*"
)


def graphemes(text: str) -> int:
    """How many characters a reader sees (extended grapheme clusters)."""
    if _SIMPLE.fullmatch(text):
        return len(text)
    return sum(1 for _ in GRAPHEME.finditer(text))


def truncate(text: str, n: int) -> str:
    """The first `n` characters as a reader counts them; never cuts inside one. Empty for n <= 0."""
    if n <= 0:
        return ""
    if len(text) <= n or _SIMPLE.fullmatch(text):
        return text[:n]
    last = next(islice(GRAPHEME.finditer(text), n - 1, n), None)
    return text if last is None else text[: last.end()]


def fitting(text: str, n: int) -> str:
    """The first characters, as a reader counts them, that are at most `n` code points together. One may be of any
    length: where a text must not cost more than so much, count these."""
    if len(text) <= n or _SIMPLE.fullmatch(text):
        return text[: max(n, 0)]
    starts = [0, *(one.start() for one in GRAPHEME.finditer(text[: max(n, 0) + 1]))]
    return text[: starts[-1]]


_HAN_CHARACTER = re.compile(f"[{HAN}]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")


def language(text: str) -> Literal["zh", "en"]:
    """'zh' where there are at least as many Chinese characters as Latin words, else 'en' (also for an empty text)."""
    text = text[:READ_LIMIT]
    han = len(_HAN_CHARACTER.findall(text))
    return "zh" if han and han >= len(_LATIN_WORD.findall(text)) else "en"


_CLOSING = r"\"'”’)\]}!~."
# Each run of closing marks is read from its beginning, and once.
_ASKED = re.compile(rf"(?<![?{_CLOSING}])[{_CLOSING}]*+\?[?{_CLOSING}]*+(?=\s|$|[{HAN}])")
_SOMEBODY = r"(?:any|some)(?:one|body)"
_OPENERS = re.compile(
    rf"""(?:^|[.!?;\n,:][ ]{{0,3}}|\b(?:so|ok|okay|well|but|and|hi|hello|hey|also|then|now|guys|all)\b,?\s{{1,3}})
    (?:how(?:['’]?s|\s+(?:do|does|did|can|could|to|would|should|come|about|is|are|was|many|much|long|often|far|big|old|else))
    |what(?:['’]?s|\s+(?:is|are|was|were|do|does|did|would|should|could|can|about|if|kind|sort|version|type|happens?|else))
    |why\s+(?:is|are|was|do|does|did|would|wo|should|can|ca|not|isn|don|doesn|won)
    |where(?:['’]?s|\s+(?:is|are|do|does|did|can|could|would|should))
    |who(?:['’]s|\s+(?:is|are|was|do|does|did|can|has|knows?))
    |when\s+(?:is|are|will|does|did|can|should)
    |which\s+(?:one|is|are|version|do|should|would|of)
    |(?:is|are|was|were|isn['’]?t|aren['’]?t)
      \s+(?:there|it|this|that|the|you|your|any|{_SOMEBODY}|they|these|my|an?|he|she|we)
    |(?:can|could|would|should|will|shall|can['’]?t|couldn['’]?t|wouldn['’]?t|shouldn['’]?t)
      \s+(?:i|you|u|we|they|he|she|it|this|that|the|any|{_SOMEBODY}|there|your|my)
    |(?:do|does|did|have|has|had|don['’]?t|doesn['’]?t|didn['’]?t|haven['’]?t)\s+(?:i|you|u|we|they|he|she|{_SOMEBODY})
    )\b""",
    re.VERBOSE,
)
_CALLS = re.compile(
    rf"\b{_SOMEBODY}\s+(?:here\s+)?(?:knows?|has|have|using|used?|tried|able|help|got|familiar|can|could|tell|else)\b"
    r"|\bany\s+(?:ideas?|suggestions?|tips|thoughts|clue|hints?|advice|way|recommendations?)\b"
    rf"|\b(?:do|does|did)\s+(?:you|{_SOMEBODY})\b|\bis\s+there\s+(?:a|any)\s*way\b"
)
_CHINESE_ASKED = re.compile(
    r"(?<![没沒])[什甚][么麼麽](?![都也])|(?<![无無论論])(?:怎[么麼麽样樣]|如何)(?![都也])|为[什何啥]|為[什何]|为么|咋|哪[个個里裡儿兒些位种種一]|多少"
    r"|[谁誰](?![都也])|请问|請問|是否|能否|可否|求助|求教|几[点个時时号天]|幾[點個時天]"
    r"|(?:有[没沒]有|([能会會要行对對是好可用])不(?:\1|可以)|可不可以|知不知道)"
    r"|[吗嗎](?=$|[\s。.,!~?)])|(?<![没什怎那这甚])[么麼](?=$|[\s?~])|呢(?=$|[\s?~])|干嘛|幹嘛"
)


def is_question(text: str) -> bool:
    """Whether the text asks something, with a question mark or without."""
    return asks(head(text))


def asks(folded: str) -> bool:
    """`is_question` of a text that is folded already."""
    if "?" in folded and _ASKED.search(folded):
        return True
    if not folded.isascii() and _CHINESE_ASKED.search(folded):
        return True
    return bool(_OPENERS.search(folded) or _CALLS.search(folded))


_THANKS_HINT = re.compile(r"[谢謝]|th(?:an|n?x)|ty|tnx|cheers|appreciated|辛苦了|3q")
_THANKS = re.compile(
    r"(?<!no )\b(?:thanks|thank\s+(?:you|u|god)|thankyou|thn?x|tnx|ty|tyvm|tysm|cheers|much appreciated)\b"
    r"(?!\s+in\s+advance)"
    r"|(?<!先)(?:谢谢|謝謝|多谢|多謝|感谢|感謝|谢了|謝了|谢啦|辛苦了)|\b3q\b"
)
_GREETING = re.compile(
    r"[\s\W]*(?:(?:hi|hello|hey|hiya|howdy|yo|greetings|sup|good\s+(?:morning|afternoon|evening|day)|morning)\b"
    r"|大家好|你们好|你們好|各位好|你好|您好|哈[喽啰囉]|嗨|[早晚]安|早上好|上午好|中午好|下午好|晚上好|早(?=$|[\s!~.,])|在吗|在嗎)"
)


def is_thanks(text: str) -> bool:
    """Whether the text thanks somebody; thanks in advance do not count."""
    return thanks(head(text))


def thanks(folded: str) -> bool:
    """`is_thanks` of a text that is folded already."""
    return bool(_THANKS_HINT.search(folded) and _THANKS.search(folded))


def is_greeting(text: str) -> bool:
    """Whether the text begins with a greeting."""
    return greets(head(text))


def greets(folded: str) -> bool:
    """`is_greeting` of a text that is folded already."""
    return bool(_GREETING.match(folded))
