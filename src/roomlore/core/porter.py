"""Porter's stemmer for English (M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980), with the
departures of his own implementation: -logi, -bli, and words of one or two letters left alone."""


def _pairs(listed: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in listed.split())


_DERIVED = _pairs(
    "ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e ousli:ous ization:ize "
    "ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble logi:log"
)
_ADJECTIVES = _pairs("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:")
_ENDINGS = _pairs(
    "al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: sion:s tion:t ou: ism: ate: iti: ous: ive: ize:"
)


def porter_stem(word: str) -> str:
    """The stem of a lower-case English word; anything but a word of ASCII letters comes back as it is."""
    if len(word) < 3 or not word.isascii() or not word.isalpha():
        return word
    word = _without_tense(_without_plural(word))
    if word[-1] == "y" and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _DERIVED, 1)
    word = _replaced(word, _ADJECTIVES, 1)
    word = _replaced(word, _ENDINGS, 2)
    return _without_final(word)


def _shape(stem: str) -> str:
    """Consonants as c and vowels as v; y is a vowel after a consonant."""
    shape = ""
    for letter in stem:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(stem: str) -> int:
    return _shape(stem).count("vc")


def _short(stem: str) -> bool:
    """Whether it ends in consonant, vowel, consonant, the last not w, x or y: hop, but not snow."""
    return _shape(stem)[-3:] == "cvc" and stem[-1] not in "wxy"


def _twin(word: str) -> bool:
    return word[-1:] == word[-2:-1] and _shape(word)[-1:] == "c"


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and word[-2] != "s" else word


def _without_tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    ending = 2 if word.endswith("ed") else 3 if word.endswith("ing") else 0
    rest = word[:-ending] if ending else ""
    if "v" not in _shape(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _twin(rest):
        return rest if rest[-1] in "lsz" else rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _short(rest) else rest


def _replaced(word: str, suffixes: dict[str, str], measure: int) -> str:
    """The word with the longest of the suffixes exchanged, where what is before it is long enough."""
    for size in range(min(7, len(word)), 1, -1):
        new = suffixes.get(word[-size:])
        if new is not None:
            changed = word[:-size] + new
            return (
                changed if _measure(changed if size == 4 and new in ("s", "t") else word[:-size]) >= measure else word
            )
    return word


def _without_final(word: str) -> str:
    if word[-1] == "e":
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word[-1] == "l" and _twin(word) and _measure(word[:-1]) > 1 else word
