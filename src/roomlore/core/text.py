"""Read text, Chinese and English alike: words, search terms, stop words, sentences, graphemes, kinds of utterance."""

import math
import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice, pairwise
from types import ModuleType
from typing import Literal, NamedTuple, TypeVar

import regex
import Stemmer

from roomlore.core import lexicon
from roomlore.core.folding import UNSPACED, VOWEL_SIGN, clusters, unaccented, whole_words, without_prefix
from roomlore.core.patterns import lazy_pattern

ENGLISH = lexicon.words("stop_word", "en")

CHINESE = lexicon.words("stop_word", "zh")

INTERJECTIONS = lexicon.words("interjection")

ORDINARY = lexicon.words("ordinary")


READ_LIMIT = 20_000
MAX_KEYWORDS = 32
_MAX_TOKEN = 128
_RUN_KEPT = 32
_MOST_KEPT = 1 << 15

HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = r"\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
HANGUL = r"\u1100-\u11ff\u3131-\u318e\uac00-\ud7af"
SYLLABIC = lazy_pattern(f"[{HAN}{KANA}{HANGUL}]")
"""A character that is a syllable or a word: Chinese, Japanese or Korean."""
# Letters, digits and _ of scripts with spaces, and the vowel signs of these, which \w leaves out.
_WORD_LETTER = rf"[^\W{HAN}{KANA}{HANGUL}{UNSPACED}]"
_VOWEL_SIGN = f"[{VOWEL_SIGN}]"
LETTER = rf"(?:{_WORD_LETTER}|{_VOWEL_SIGN})"
# The same as many of these, read faster: a set is repeated without trying the other.
LETTERS = rf"{LETTER}{_WORD_LETTER}*(?:{_VOWEL_SIGN}+{_WORD_LETTER}*)*"
OTHER_LETTER = rf"[^\W\d_a-z{HAN}{KANA}{HANGUL}{UNSPACED}]|{_VOWEL_SIGN}"
"""A letter beside a-z of a folded text in a script with spaces."""
AS_LONG_AS_A_WORD = rf"[{HAN}]|[{KANA}{HANGUL}]{{1,2}}|[{UNSPACED}]{{1,4}}"
"""What counts as one word of other scripts where the length of a text is measured."""
# The tokens of a folded text: addresses, words with the marks inside, runs of Chinese, syllables, emoji.
_TOKEN = lazy_pattern(
    rf"(?P<url>(?:https?|ftp)://[^\s<>\"'|{HAN}]+)"
    rf"|(?P<latin>{LETTERS}(?:(?:::|->|['’./:\\@=+#&~-]){LETTERS})*(?:\+\+|\#)?)"
    rf"|(?P<han>[{HAN}]+)"
    rf"|(?P<syllables>[{KANA}]+|[{HANGUL}]+|[{UNSPACED}]+)"
    r"|(?P<emoji>[\u2600-\u27bf\U0001f1e6-\U0001f1ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff])"
)
# The same in an ASCII text without an address.
_ASCII_TOKEN = lazy_pattern(r"[a-z0-9_]+(?:(?:::|->|['./:\\@=+#&~-])[a-z0-9_]+)*(?:\+\+|\#)?")
# The same in an ASCII text.
_ASCII_URL_TOKEN = lazy_pattern(rf"(?:https?|ftp)://[^\s<>\"'|]+|{_ASCII_TOKEN.pattern}")
# A part of a technical word: of snake_case and a.b.
_PART = lazy_pattern(rf"(?:(?!_){LETTER})+")
# The end of he's; all of don't.
_CONTRACTION = lazy_pattern(r"['’](?:s|re|ve|ll|d|m)$|\A.*n['’]t$")
# The host of an address, without a user and www.
_URL_HOST = lazy_pattern(r"[a-z]+://(?:[^/@\s]*@)?(?:www\.)?([^/:?#\s]+)")
# An absurd run of combining marks.
_MARKS = regex.compile(r"\p{M}{32,}")


def _segmenter() -> ModuleType:
    """Return the segmenter. Its dictionary is read at the first Chinese word; an instance of our own would read it
    again, which takes 0.1 s and 25 MB."""
    import rjieba

    return rjieba


def fold(text: str) -> str:
    """Return the text in NFKC and case-folded, the form in which names, keywords and words are compared."""
    if text.isascii():
        return text.lower()
    # Unicode normalisation sorts each run of combining marks in quadratic time, so an absurd run is cut first.
    return unicodedata.normalize("NFKC", _MARKS.sub(lambda run: run[0][:32], text)).casefold()


def head(text: str) -> str:
    """Return the analysed beginning of a text, folded."""
    text = text[:READ_LIMIT]
    return text.lower() if text.isascii() else _folded(text)


@lru_cache(maxsize=16)
def _folded(text: str) -> str:
    """Fold a message once for its features, its words and its link: beyond ASCII that takes long."""
    return fold(text)[: 2 * READ_LIMIT]


def segment(run: str) -> tuple[str, ...]:
    """Return a run of Chinese characters cut into words."""
    return _cut(run) if len(run) <= _RUN_KEPT else tuple(_segmenter().cut(run))


@lru_cache(maxsize=1 << 10)
def _cut(run: str) -> tuple[str, ...]:
    """Cut a short run once for the keywords and the names of a message, and phrases that return once for all."""
    return tuple(_segmenter().cut(run))


Value = TypeVar("Value")


class Memo(dict[str, Value]):
    """What a function returns for each word, computed at the first look-up, and emptied when it is full. `lru_cache`
    also keeps the order of the look-ups, which takes as long as reading a word. A long word is not kept."""

    def __init__(self, function: Callable[[str], Value]) -> None:
        self._function = function

    def __missing__(self, word: str) -> Value:
        value = self._function(word)
        if len(word) <= _MAX_TOKEN:
            if len(self) >= _MOST_KEPT:
                self.clear()
            self[word] = value
        return value


class _Latin(NamedTuple):
    """What is read in a Latin token, wherever it stands. `stems`: of the words."""

    keywords: Sequence[str]
    words: Sequence[str]
    stems: Sequence[str]

    @classmethod
    def of(cls, token: str) -> "_Latin":
        keywords, words = _latin_keyword(token), _latin_words(token)
        stems = tuple([stemmed(word) for word in words])
        # Most of these are equal: as one value they take less memory to read.
        words = keywords if words == keywords else words
        return cls(keywords, words, words if stems == words else stems)


_latin = Memo(_Latin.of)


class _Token(NamedTuple):
    """A token of another kind. What is read in it is computed each time, as most are seen once."""

    kind: str | None
    text: str

    @property
    def keywords(self) -> Sequence[str]:
        if self.kind == "han":
            return [word for word in segment(self.text) if word not in CHINESE]
        if self.kind == "syllables":
            return [self.text[:_MAX_TOKEN]] if len(self.text) > 1 else []
        host = _URL_HOST.match(self.text) if self.kind == "url" else None
        return [host[1]] if host else []

    @property
    def words(self) -> Sequence[str]:
        if self.kind == "han":
            return list(_han_words(self.text))
        if self.kind == "syllables":
            return list(_syllable_words(self.text))
        if self.kind == "url":
            return _technical_words(self.text.split("://", 1)[1].rstrip(".,;:!?)]}/"))
        return [self.text]

    @property
    def stems(self) -> Sequence[str]:
        return [stemmed(word) for word in self.words] if self.kind == "url" else self.words


@lru_cache(maxsize=16)
def _tokens(folded: str) -> Sequence[_Latin | _Token]:
    """Return the tokens in order. Keywords and words of a message share them."""
    if not folded.isascii():
        matches = _TOKEN.finditer(folded)
        return [
            _latin[match[0]] if match.lastgroup == "latin" else _Token(match.lastgroup, match[0]) for match in matches
        ]
    if "://" not in folded:
        return [_latin[token] for token in _ASCII_TOKEN.findall(folded)]
    tokens = _ASCII_URL_TOKEN.findall(folded)
    return [_Token("url", token) if "://" in token else _latin[token] for token in tokens]


def words(text: str) -> list[str]:
    """Return the words of a text in order, repeats kept, for search and similarity.

    Words are folded, English lightly stemmed, stop words of both languages dropped. A technical token, file name,
    version or URL is kept whole and followed by its parts. A Chinese word is preceded by the shorter words inside it;
    runs of single characters also give pairs. Emoji are words.
    """
    return [word for token in _tokens(head(text)) for word in token.words]


def stemmed_words(text: str) -> dict[str, None]:
    """Return the distinct `words` of a text in order, English ones as their stems, so that "optimize" meets
    "optimization"."""
    return dict.fromkeys([stem for token in _tokens(head(text)) for stem in token.stems])


def keywords(text: str) -> tuple[str, ...]:
    """Return up to 32 distinct keywords in order of appearance.

    English words keep their folded surface form except that plurals become singular, so that the same word matches and
    stays readable; technical tokens stay whole; a URL gives its host; Chinese words are those of the segmenter. Stop
    words of both languages, lone digits and emoji are omitted.
    """
    all_keywords: dict[str, None] = {}
    for token in _tokens(head(text)):
        for keyword in token.keywords:
            all_keywords[keyword] = None
        if len(all_keywords) >= MAX_KEYWORDS:
            break
    return tuple(all_keywords)[:MAX_KEYWORDS]


def _latin_keyword(token: str) -> tuple[str, ...]:
    if not token.isalnum():
        token = _CONTRACTION.sub("", token.strip("_"))
    if not 1 < len(token) <= _MAX_TOKEN or token in ENGLISH or (token.isdigit() and len(token) < 3):
        return ()
    if token.isalnum():
        token = singular(token)
        return () if token in ENGLISH else (token,)
    return (token,) if any(part not in ENGLISH for part in _PART.findall(token)) else ()


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
    for word in _segmenter().cut_for_search(run):
        if word not in CHINESE:
            yield word
            if single and len(word) == 1:
                yield single + word
        single = word if len(word) == 1 else ""


def _syllable_words(run: str) -> Iterator[str]:
    yield run[:_MAX_TOKEN]
    its = pieces(run)
    if len(its) > 2:
        yield from _pairs(its)


def singular(word: str) -> str:
    """Return the singular of a regular English plural; any other word unchanged."""
    if len(word) < 4 or word[-1] != "s" or not word.isascii() or not word.isalpha() or word[-2] in "sui":
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")) and not word.endswith("aches"):
        return word[:-2]
    return word[:-1]


def stem(word: str) -> str:
    """Return a light English stem: plural, -ing, -ed and a final -e are removed; words with other letters or digits
    stay."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = singular(word)
    if word.endswith("ing"):
        word = _without_suffix(word, word[:-3])
    elif word.endswith("ed") and not word.endswith("eed"):
        word = _without_suffix(word, word[:-2])
    return word[:-1] if len(word) > 4 and word[-1] == "e" and word[-2] != "e" else word


# Where British and American spelling differ: organise, analyze, colour, centre, catalogue, defence.
_SPELLING = lazy_pattern(
    r"(?<=[a-z][b-df-hj-np-tv-xz]i)s(?=(?:e[drs]?|ers|ing|ations?|able)\Z)"
    r"|(?<=[a-z]{2}y)z(?=(?:e[drs]?|ers|ing)\Z)"
    r"|(?<=[a-z]{2}o)u(?=r(?:s|ed|ing|ful|able|ites?|hoods?|less|ers?|y|al|ally)?\Z)"
    r"|(?<=[a-z]{2}t)re(?=s?\Z)"
    r"|(?<=[a-z]{3}og)ue(?=s?\Z)"
    r"|(?<=\A(?:defen|offen|licen))c(?=e[ds]?\Z|ing\Z)"
)
# The spelling that has the stem of its relatives: organize and organ, analyse and analysis, humor and humorous.
_SPELLED = {"s": "z", "z": "s", "u": "", "re": "er", "ue": "", "c": "s"}
_AMERICAN = lexicon.values("british", "en")
# How words begin that are spelt with an s everywhere.
_WITH_S = tuple(lexicon.words("with_s", "en"))


def stemmed(word: str) -> str:
    """Return the stem of an English word, so that "optimize" meets "optimisation"; any other word unchanged."""
    return _stem_of(word) if word.isascii() and word.isalpha() else word


def _stem_of(word: str) -> str:
    if word.startswith(_WITH_S):
        return _snowball.stem(word)
    return _snowball.stem(_SPELLING.sub(lambda part: _SPELLED[part[0]], _AMERICAN.get(word, word)))


class _Snowball(threading.local):
    """A stemmer for each thread, since one must not serve two."""

    def __init__(self) -> None:
        self.stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
        self.russian: Callable[[str], str] = Stemmer.Stemmer("russian", 0).stemWord


_snowball = _Snowball()


def _without_suffix(word: str, rest: str) -> str:
    if len(rest) < 3 or not any(letter in "aeiouy" for letter in rest):
        return word
    if len(rest) == 3:
        closed = rest[0] not in "aeiou" and rest[1] in "aeiouy" and rest[2] not in "aeiouwxy"
        return rest + "e" if closed else rest
    return rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "aeiouslz" else rest


# A run of stops is matched from its beginning only, since no later start can match more.
_SENTENCE_END = lazy_pattern(
    r"[。！？；…]+[”’」』）)\"']*|(?<![.!?])[.!?]++[”’)\]\"']*+(?=\s|$)|\n+",
)
# A full stop that ends no sentence.
_ABBREVIATION = lazy_pattern(r"(?:^|[\s(])(?:e\.g|i\.e|mr|mrs|ms|dr|prof|vs|cf|no|approx|st|[a-z])\.$", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, stripped, each with its closing punctuation, without blank ones.

    A full stop ends a sentence only before white space or the end, so versions, file names and URLs stay whole.
    """
    all_sentences = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end[0] == "." and _ABBREVIATION.search(text, max(start, end.end() - 10), end.end()):
            continue
        all_sentences.append(text[start : end.end()].strip())
        start = end.end()
    all_sentences.append(text[start:].strip())
    return [sentence for sentence in all_sentences if sentence]


# Flags are paired here, since `\X` would look back to the run's beginning for each of them.
GRAPHEME = regex.compile(r"[\U0001f1e6-\U0001f1ff]{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*+|\X")
# One code point is one grapheme among these: printable ASCII, kana without combining marks, Han, full-width forms.
_SIMPLE = lazy_pattern(
    r"[\n -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u3000-\u3029\u3041-\u3096\u30a0-\u30ff\u3400-\u9fff\uff01-\uff9d]*"
)


def graphemes(text: str) -> int:
    """Return the number of graphemes (extended grapheme clusters)."""
    if _SIMPLE.fullmatch(text):
        return len(text)
    return sum(1 for _ in GRAPHEME.finditer(text))


def truncate(text: str, n: int) -> str:
    """Return the first `n` graphemes; never cuts inside one. Empty for n <= 0."""
    if n <= 0:
        return ""
    if len(text) <= n or _SIMPLE.fullmatch(text):
        return text[:n]
    last = next(islice(GRAPHEME.finditer(text), n - 1, n), None)
    return text if last is None else text[: last.end()]


def fitting(text: str, n: int) -> str:
    """Return the first graphemes that are at most `n` code points together. A grapheme may have any length, so use this
    to bound the size."""
    if len(text) <= n or _SIMPLE.fullmatch(text):
        return text[: max(n, 0)]
    starts = [0, *(match.start() for match in GRAPHEME.finditer(text[: max(n, 0) + 1]))]
    return text[: starts[-1]]


# A Chinese character.
_HAN_CHARACTER = lazy_pattern(f"[{HAN}]")
# A Latin word.
_LATIN_WORD = lazy_pattern(r"[A-Za-z\u00c0-\u024f]+")


def language(text: str) -> Literal["zh", "en"]:
    """Return 'zh' if there are at least as many Chinese characters as Latin words, else 'en' (also for an empty
    text)."""
    text = text[:READ_LIMIT]
    han = len(_HAN_CHARACTER.findall(text))
    return "zh" if han and han >= len(_LATIN_WORD.findall(text)) else "en"


def is_chinese(term: str) -> bool:
    """Return True if a term begins with a Chinese character."""
    return _HAN_CHARACTER.match(term) is not None


_CLOSING = r"\"'”’)\]}!~."
# Each run of closing marks is read once, from its beginning.
_ASKED = lazy_pattern(rf"(?<![?{_CLOSING}])[{_CLOSING}]*+\?[?{_CLOSING}]*+(?=\s|$|[{HAN}])")
_BEFORE = rf"{lexicon.forms('before_question', 'en')}\b,?\s{{1,3}}"
_OPENING = rf"{lexicon.forms('question_opening', 'en')}\b"
# The first words of a question, at the beginning of a text.
_OPENER = lazy_pattern(rf"(?:{_BEFORE})?{_OPENING}")
# The same behind the end of a word, at the beginning of a clause.
_LATER_OPENER = lazy_pattern(rf"\W(?:(?<=[.!?;\n,:]) {{0,3}}|{_BEFORE}){_OPENING}")
_CALLS, _CALL_HINTS = lexicon.pattern("call"), lexicon.words("call_hint")
_QUESTION = lexicon.pattern("question")
# A Chinese question, by the words inside it.
_CHINESE_ASKED = lazy_pattern(lexicon.alternatives("question", "zh"))
# A character that is in every such question.
_CHINESE_HINT = lazy_pattern(f"[{''.join(sorted(lexicon.words('question_hint', 'zh')))}]")


def has_any(folded: str, parts: Iterable[str]) -> bool:
    """Return True if a text contains one of these. A loop takes half the time of `any`."""
    for part in parts:  # noqa: SIM110
        if part in folded:
            return True
    return False


def is_question(text: str) -> bool:
    """Return True if the text is a question, with or without a question mark."""
    return asks(head(text))


def asks(folded: str) -> bool:
    """Return `is_question` of a text that is folded already."""
    if "?" in folded and _ASKED.search(folded):
        return True
    read = lexicon.spoken(folded)
    if not folded.isascii() and "zh" in read and _CHINESE_HINT.search(folded) and _CHINESE_ASKED.search(folded):
        return True
    if read is not lexicon.always() and _QUESTION.search(folded):
        return True
    return bool(_OPENER.match(folded) or _LATER_OPENER.search(folded)) or (
        has_any(folded, _CALL_HINTS) and _CALLS.search(folded) is not None
    )


_THANKS, _THANKS_HINTS = lexicon.pattern("thanking"), lexicon.words("thanking_hint")
# A greeting at the beginning, after marks only.
_GREETING = lazy_pattern(rf"[\s\W]*(?:{lexicon.alternatives('greeting')})")

# A request at the beginning of a clause.
_REQUEST = lazy_pattern(rf"(?:^|[,.!;:~。\s])\s{{0,3}}(?:{lexicon.alternatives('request')})")


def thanks(folded: str) -> bool:
    """Return True if a folded text thanks somebody; thanks in advance do not count."""
    return has_any(folded, _THANKS_HINTS) and _THANKS.search(folded) is not None


def greets(folded: str) -> bool:
    """Return True if a folded text begins with a greeting."""
    return bool(_GREETING.match(folded))


def requests(folded: str) -> bool:
    """Return True if a clause of a folded text asks for something without being a question."""
    return _REQUEST.search(folded) is not None


_MAX_TERM = 64
# The runs of a text of which terms are made.
_RUN = lazy_pattern(
    rf"(?P<latin>{LETTERS}(?:['’]{LETTERS})*)|(?P<pieces>[{HAN}{KANA}]+|[{HANGUL}]+|[{UNSPACED}]+)"
    r"|(?P<emoji>[\u2600-\u27bf\U0001f300-\U0001f3fa\U0001f400-\U0001faff])"
)
# A word of an ASCII text.
_ASCII = lazy_pattern(r"[a-z0-9_]+(?:'[a-z0-9_]+)*")
# The end of he's and don't.
_CONTRACTED = lazy_pattern(r"['’](?:s|t|re|ve|ll|d|m)$")

# A Cyrillic letter.
_CYRILLIC = lazy_pattern(r"[\u0400-\u052f]")

_EMPTY = lexicon.words("empty_term", "en")
_EMPTY_HAN = lexicon.words("empty_term", "zh")


@lru_cache(maxsize=1 << 14)
def rarity(having: int, texts: int) -> float:
    """Return the rarity of a term that `having` of so many texts contain, as in BM25: ln(1 + (N - n + 0.5) /
    (n + 0.5)).

    `having` counts as `texts` if it is more."""
    having_bounded = min(having, texts)
    return math.log1p((texts - having_bounded + 0.5) / (having_bounded + 0.5))


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, repeats kept, without accents and marks; of a script without spaces, its
    pieces and their pairs. Never raises; reads the first 20,000 characters."""
    if not text:
        return []
    text = head(text)
    all_terms: list[str] = []
    if text.isascii():
        for word in _ASCII.findall(text):
            all_terms += _latin_terms[word]
        return all_terms
    for run in _RUN.finditer(unaccented(text)):
        kind = run.lastgroup
        if kind == "latin":
            all_terms += _latin_terms[run[0]]
        elif kind == "emoji":
            all_terms.append(run[0])
        else:
            all_terms += _characters(run[0])
    return all_terms


# A letter that is neither of English nor Chinese.
_OTHER_SCRIPT = lazy_pattern(r"[\u00c0-\u1fff\u2c00-\u2ddf\u3041-\u318e\u31f0-\u31ff\ua4d0-\ud7af\uff66-\uffdc]")
# A word of a question that is none of its answer; those of Chinese have weights of their own.
_FRAMING = lazy_pattern(lexicon.alternatives("interrogative", "others"), re.IGNORECASE)


def in_other_script(text: str) -> bool:
    """Return True if a text has letters that neither English nor Chinese has."""
    return not text.isascii() and _OTHER_SCRIPT.search(text) is not None


def unframed(text: str) -> str:
    """Return a text without the words of questions, such as "where", in other languages than English and Chinese."""
    return _FRAMING.sub(" ", text) if in_other_script(text) else text


def written(text: str) -> list[str]:
    """Return the words of a text of which `terms` leaves out accents or prefixes, in order, with these. Of two messages
    with the same term, they tell the one with the very word."""
    return whole_words(head(text)) if in_other_script(text) else []


def _terms_of(run: str) -> tuple[str, ...]:
    parts = [run] if run.isalnum() else re.split("['’_]+", _CONTRACTED.sub("", run))
    return tuple([_root(part[:_MAX_TERM]) for part in parts if part and part not in _EMPTY])


def _root(word: str) -> str:
    if word.isascii():
        return _stem_of(word)
    return _snowball.russian(word) if _CYRILLIC.match(word) else without_prefix(word)


_latin_terms = Memo(_terms_of)


def _characters(run: str) -> list[str]:
    its = pieces(run)
    return [piece for piece in its if piece not in _EMPTY_HAN] + _pairs(its)


# A letter of a script without spaces beside Chinese and kana.
_UNSPACED = lazy_pattern(f"[{UNSPACED}]")


def pieces(run: str) -> Sequence[str]:
    """Return the pieces of a run of one script without spaces, or of Korean: its characters, or letters with signs."""
    return clusters(run) if _UNSPACED.match(run) else run


def _pairs(its: Sequence[str]) -> list[str]:
    return [first + second for first, second in pairwise(its)]


def is_written(term: str) -> bool:
    """Return True for a word of `written`."""
    return term in written(term)


# Hiragana, and what else Japanese is written with.
_HIRAGANA, _BESIDE_HIRAGANA = lazy_pattern(r"[\u3041-\u309f]+"), lazy_pattern(rf"[{HAN}\u30a1-\u30fa]")


def without_grammar(found: Iterable[str]) -> dict[str, None]:
    """Return distinct terms without those of hiragana if others are of Chinese characters or katakana: beside these it
    writes particles and endings."""
    distinct = dict.fromkeys(found)
    grammar = [term for term in distinct if _HIRAGANA.fullmatch(term)]
    if grammar and any(map(_BESIDE_HIRAGANA.match, distinct)):
        for term in grammar:
            del distinct[term]
    return distinct


def pieces_in(term: str) -> int:
    """Return how many pieces of a script without spaces a term consists of; 0 for a word."""
    if SYLLABIC.match(term):
        return len(term)
    return len(clusters(term)) if _UNSPACED.match(term) else 0


_ALIKE = 0.6
_COMPARED_CHARS = 32
_COMPARED = 200


def alike(name: str, others: Iterable[str], *, most: int = 3) -> list[str]:
    """Return those of some names that a misspelt one may mean, the likeliest first: similar ones, then those that
    contain it. Reads the first 32 characters of each, and at most 200 names."""
    compared: dict[str, list[str]] = {}
    for other in islice(others, _COMPARED):
        compared.setdefault(unaccented(fold(other[:_COMPARED_CHARS])), []).append(other)
    wanted = unaccented(fold(name[:_COMPARED_CHARS]))
    like = get_close_matches(wanted, compared, n=most, cutoff=_ALIKE) if wanted else []
    like += [text for text in compared if len(wanted) > 1 and wanted in text and text not in like]
    return [other for text in like for other in compared[text]][:most]


_MIN_ROOT = 5


def roots(text: str) -> list[str]:
    """Return the terms of a text without the final i that the stemmer leaves of a y, so that allergy meets allergic."""
    return [term[:-1] if term[-1] == "i" and len(term) > _MIN_ROOT else term for term in terms(text)]


def last_roots(words: Iterable[str]) -> frozenset[str]:
    """Return the root of each word: of a Chinese one of two characters the pair, not the characters."""
    return frozenset(root for word in words for root in roots(word)[-1:])
