"""The form in which search compares words of any script: without accents and marks, and in pieces where a script is
written without spaces.

Marks that are letters stay: the vowel signs of Indic and Thai scripts, tone marks of Thai, the voicing marks of kana.
"""

import unicodedata
from functools import lru_cache

import regex

from roomlore.core.patterns import lazy_pattern

UNSPACED = (
    r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1780-\u17d3\u17d7"
    r"\u17dc\u17dd\u1950-\u19cf\u1a20-\u1a7f\u1b00-\u1b4c\ua980-\ua9c0\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaadf"
)
"""Letters and signs of scripts without spaces but for Chinese and kana: Thai, Lao, Burmese, Khmer and others."""
VOWEL_SIGN = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d\u0859-\u085b"
    r"\u0898-\u089f\u08ca-\u08e1\u08e3-\u0963\u0966-\u0dff\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e\u0f3f\u0f71-\u0f84"
    r"\u0f86-\u0fbc\u135d-\u135f\u1712-\u1715\u1732-\u1734\u1752\u1753\u1772\u1773\u180b-\u180f\u18a9\u1920-\u193b"
    r"\u1a17-\u1a1b\u1ab0-\u1ace\u1b80-\u1bad\u1be6-\u1bf3\u1c24-\u1c37\u1cd0-\u1cf9\u1dc0-\u1dff\ua802\ua806\ua80b"
    r"\ua823-\ua82c\ua880\ua881\ua8b4-\ua8c5\ua8e0-\ua8ff\ua926-\ua92d\ua947-\ua953\uaa29-\uaa4d\uaaeb-\uaaf6"
    r"\uabe3-\uabed"
)
"""The marks inside words of scripts with spaces, of which `\\w` knows none."""

# Latin letters with an accent, or of one language, such as ø.
_LATIN = r"\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff"
# Of Cyrillic only ё; й is another letter than и.
_GREEK_CYRILLIC = r"\u0390\u03ac-\u03b0\u03ca-\u03ce\u1f00-\u1fff\u0450\u0451\u045d"
_ARABIC = r"\u0622-\u0626\u0629\u0649\u0671\u06a9\u06c0-\u06c2\u06cc\u06d5"
_DROPPED = (
    r"\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    r"\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u1ab0-\u1ace\u1dc0-\u1dff\u20d0-\u20f0"
    r"\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
)
_FIGURES = r"\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0e50-\u0e59\u0ed0-\u0ed9\u1040-\u1049\u17e0-\u17e9"
# What `unaccented` drops or replaces.
_MARKED = lazy_pattern(f"[{_LATIN}{_GREEK_CYRILLIC}{_ARABIC}{_DROPPED}{_FIGURES}]")
# An accent, a point, the stroke that stretches Arabic words, or a character without a form.
_MARK = lazy_pattern(f"[{_DROPPED}]")
# A Latin word of a folded text.
_LATIN_WORD = lazy_pattern(f"[a-z0-9{_LATIN}]+")
_ARABIC_LETTER = r"\u0620-\u063f\u0641-\u064a\u066e-\u06d3"
# An Arabic or Persian word whose parts are set apart by a character without a form.
_JOINED = lazy_pattern(rf"(?<![{_ARABIC_LETTER}\u200c])[{_ARABIC_LETTER}]++(?:\u200c++[{_ARABIC_LETTER}]++)++")
_PLAIN = str.maketrans(
    dict(zip("łøđðħŧıŋ", "loddhtin", strict=True))
    | {"þ": "th", "æ": "ae", "œ": "oe", "ٱ": "ا", "ة": "ه", "ى": "ي", "ی": "ي", "ک": "ك", "ہ": "ه", "ە": "ه"}
)


def unaccented(folded: str) -> str:
    """Return a folded text without accents, points of vowels and joiners, with one form of each Arabic letter and with
    ASCII figures. A Persian word with joiners is followed by its parts."""
    if _MARKED.search(folded) is None:
        return folded
    if "\u200c" in folded:
        folded = _JOINED.sub(lambda word: word[0] + " " + word[0].replace("\u200c", " "), folded)
    return _MARKED.sub(lambda letter: _plain(letter[0]), folded)


@lru_cache(maxsize=1 << 11)
def _plain(letter: str) -> str:
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    base = unicodedata.normalize("NFD", letter)[0]
    return "" if _MARK.match(base) else base.translate(_PLAIN)


# The article of an Arabic word, with what is written before it; and what is written before a Hebrew word.
_BEFORE_WORD = lazy_pattern(r"(?:[وف]?(?:[بك]?ال|لل)(?=[\u0620-\u06d3]{3})|[בהוכלמש]+(?=[א-ת]{3}))")
# A Hebrew or Arabic word.
_PREFIXED = lazy_pattern(rf"[א-ת]+|[{_ARABIC_LETTER}]+")


def without_prefix(word: str) -> str:
    """Return a word without accents without its Arabic article or Hebrew prefixes, if three letters are left."""
    prefix = _BEFORE_WORD.match(word)
    return word[prefix.end() :] if prefix else word


def whole_words(folded: str) -> list[str]:
    """Return those words of a folded text that are indexed with less than they are written: Latin ones with accents,
    as they are, and Arabic and Hebrew ones with prefixes."""
    plain = unaccented(folded)
    latin = [] if plain == folded else [word for word in _LATIN_WORD.findall(folded) if not word.isascii()]
    return latin + [word for word in _PREFIXED.findall(plain) if _BEFORE_WORD.match(word)]


# A letter with its signs, the vowels before and after it, and the letters stacked below. Each part is bounded.
_CLUSTER = regex.compile(
    r"\p{Logical_Order_Exception}{0,2}.(?:[\u1039\u17d2\u1a60\u1b44\ua9c0].|\p{M}){0,12}[\u0e30\u0e32\u0e45\u0eb0\u0eb2\u0ebd]{0,2}"
)
# Thai and Lao signs of one letter, which people type in either order.
_STACKED = lazy_pattern(r"[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece]{2,}")


def clusters(run: str) -> list[str]:
    """Return the clusters of a run of `UNSPACED`: a syllable is one or two of them, and no word ends inside one."""
    return list(map(str, _CLUSTER.findall(_STACKED.sub(lambda signs: "".join(sorted(signs[0])), run))))
