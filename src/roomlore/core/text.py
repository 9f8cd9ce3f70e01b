"""Read text, Chinese and English alike: words, search terms, stop words, sentences, graphemes, kinds of utterance."""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from types import ModuleType
from typing import Literal

import regex
import Stemmer

from roomlore.core import lexicon
from roomlore.core.patterns import lazy_pattern


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


ENGLISH = _listed(
    """
    a about above actually after again against ago all almost already also although always am an and another any
    anybody anyone anything anyway are aren around as ask at away back be became because become been before being
    below better between both but by came can cannot come could couldn did didn do does doesn doing don done down
    during each either else enough etc even ever every everybody everyone everything few for from further gave get
    gets getting give given go goes going gone gonna good got gotta guess had hadn has hasn have haven having he her
    here hers herself him himself his how however i idk if ill im imho imo in instead into is isn isnt it its itself
    ive just keep kind know knows last later least less let lets like little lol long look looks lot made make makes
    many may maybe me mean means might mine more most much must mustn my myself need needs neither never next no
    nobody none nope nor not nothing now of off often oh ok okay on once one ones only onto or other others
    otherwise ought our ours ourselves out over own people perhaps please pls possible pretty probably put quite
    rather really right said same saw say says see seem seems seen sees several shall she should shouldn since so
    some somebody somehow someone something sometimes somewhere soon sorry still such sure take taken tell than that
    thats the their theirs them themselves then there theres these they thing things think this those though thought
    through thus till to together too took toward tried tries try trying u under unless until up upon ur us use used
    uses using usually very via want wanted wants was wasn way we well went were weren what whatever whats when
    where whether which while who whole whom whose why will with within without won wont would wouldn yeah yep yes
    yet you your yours yourself yourselves dont doesnt didnt cant couldnt wouldnt shouldnt havent hasnt wasnt werent
    youre theyre e.g i.e hi hey hello hmm haha hehe thx thanks thank ty np lmao btw afaik b d f g h j k l m n o p q
    r s t v w y z
    """
)

CHINESE = _listed(
    """
    的 了 是 我 你 您 他 她 它 在 有 和 与 與 及 或 就 不 都 一 也 很 到 说 說 要 去 会 會 着 著 没 沒 看 好 这 這
    那 么 麼 嗎 吗 呢 吧 啊 呀 哦 噢 喔 嗯 哈 嘛 啦 哎 唉 诶 欸 喂 哟 额 呃 咯 嘞 哇 呗 之 于 於 以 而 但 被 把 给
    給 让 讓 向 从 從 对 對 为 為 因 所 其 此 该 該 每 各 某 另 再 又 还 還 才 只 已 曾 将 將 正 更 最 太 真 可 能
    想 做 用 来 來 出 过 過 上 下 里 裡 里面 中 后 後 前 个 個 些 几 幾 多 少 大 小 等 得 地 们 們 啥 咋 谁 誰 哪 何
    如 若 则 則 并 並 且 跟 同 比 叫 请 請 两 二 三 四 五 六 七 八 九 十 人 天 点 點 次 件 位 种 種 样 樣 时 時 年
    月 日 号 號 话 話 事 先 别 別 行 走 问 問 写 知 道 觉 打 开 看看 試 试 弄 搞 算 像 当 當 至 我们 我們 你们 你們
    您们 他们 他們 她们 她們 它们 它們 咱 咱们 咱們 自己 大家 别人 別人 人家 有人 某人 各位 这个 這個 那个 那個 这些
    這些 那些 这样 這樣 那样 那樣 这么 這麼 那么 那麼 这里 這裡 这儿 那里 那裡 那儿 这边 這邊 那边 那邊 这种 這種
    那种 那種 什么 什麼 甚麼 怎么 怎麼 怎样 怎樣 怎么样 怎麼樣 怎么办 怎麼辦 为什么 為什麼 为啥 如何 哪个 哪個 哪里
    哪裡 哪儿 哪些 多少 几个 幾個 是否 是不是 有没有 有沒有 能不能 可不可以 会不会 要不要 对不对 行不行 好不好 一个
    一個 一些 一下 一点 一點 一样 一樣 一直 一起 一般 一定 一次 两个 兩個 有点 有點 有些 有的 没有 沒有 不是 不会
    不會 不能 不要 不用 不行 不过 不過 不太 不知 知道 不知道 可以 可能 应该 應該 需要 觉得 覺得 认为 認為 感觉 感覺
    以为 以為 因为 因為 所以 但是 可是 然后 然後 而且 或者 还是 還是 如果 要是 虽然 雖然 只是 只要 只有 就是 就算
    其实 其實 确实 確實 真的 已经 已經 现在 現在 刚刚 剛剛 刚才 剛才 刚 剛 之前 之后 之後 以后 以後 以前 时候 時候
    后来 後來 还有 還有 以及 关于 關於 对于 對於 根据 根據 通过 通過 比如 例如 比较 比較 非常 特别 特別 十分 太多
    更加 最好 大概 差不多 左右 起来 起來 出来 出來 过来 過來 过去 過去 下来 下來 上去 进去 回来 东西 東西 事情 问题
    問題 办法 辦法 意思 请问 請問 求助 帮忙 幫忙 麻烦 麻煩 谢谢 謝謝 多谢 感谢 感謝 谢了 你好 您好 大家好 好的 好吧
    好了 嗯嗯 哈哈 哈哈哈 哈哈哈哈 呵呵 嘿嘿 嘻嘻 嗨 哈喽 收到 对啊 對啊 是的 是啊 对的 對的 行吧 没事 沒事 不客气
    不客氣 没问题 沒問題 明白 了解 ok 来说 的话 的話 来着 而已 罢了 什麽 怎麽 这麽 那麽 為何 为何 干嘛 幹嘛 咋办
    咋样 说话 看到 看来 看來 想要 出现 出現 进行 進行 使用
    """
)

# Answers and openings that precede a comma far more often than they are somebody's name.
INTERJECTIONS = _listed(
    """
    ah alright amazing anyhow awesome basically btw cool correct damn dude exactly fine first finally folks great
    guys hence indeed lastly man mate nah nice nvm obviously okey right second sir sorry sounds then true ubuntu
    linux ugh unfortunately welcome what windows wow yea yup user test root guest 好 对 嗯 是 行 不 那 哦 另外 首先
    其次 最后 总之 老师 同学 朋友 兄弟 今天 明天 昨天 上午 下午 晚上
    """
)

# Words of computers and of daily life, used as nicknames but more often as words.
ORDINARY = _listed(
    """
    able access action add address admin alpha anger angel apple apt automatic back bash beta bin bios black blue
    boot bot box boy browser bug build bus button call card case cat change channel chaos chat check clean client
    close cloud code coffee color command common computer config connect console copy core correct crash cursor
    daemon dark data date day dead debian debug default delete dell desktop dev dir directory disk doc docker dog
    driver edit email empty error event fan fast file firefox fire fix flash folder font format free friend full fun
    game gentoo ghost gnome google group hack hacker happy hard head home host hot house hub ice image info init
    install intel internet iso java job joker kde kernel key laptop lib library light line link list live load local
    lock log login loop lost love lucky mac machine magic mail mate memory menu message metal mode module monitor
    moon mount mouse music name net network news nice night node noob normal null number offline open oracle order
    output package page panel paper partition pass password patch path perl phone php pin ping pink place plain play
    point port post power print problem process program proxy python question quick quit radio rain ram random read
    ready real red remote report reset return river rock rocket root ruby run save screen script search second
    secret server service session set setup shadow shell sign silver simple site sky sleep slow smart smoke snow
    software solid sound source space spirit start state stick stone storm stop string style sudo sun support swap
    switch system tab table talk team tech term terminal test text theme time tool top trash tree turn type ubuntu
    unix update upgrade user version video view vim virus visitor wait water web white wifi window windows wine
    winter wireless wolf word work world write xchat yellow zero
    """
)


READ_LIMIT = 20_000
MAX_KEYWORDS = 32
_MAX_TOKEN = 128
_RUN_KEPT = 32

HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = r"\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
HANGUL = r"\u1100-\u11ff\u3131-\u318e\uac00-\ud7af"
SYLLABIC = lazy_pattern(f"[{HAN}{KANA}{HANGUL}]")
"""A character that is a syllable or a word: Chinese, Japanese or Korean."""
# Letters, digits, _ and the vowel signs of Indic and Thai scripts, which \w leaves out.
LETTER = rf"(?:[^\W{HAN}{KANA}{HANGUL}]|[\u0300-\u036f\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e])"
_TOKEN = lazy_pattern(
    rf"(?P<url>(?:https?|ftp)://[^\s<>\"'|{HAN}]+)"
    rf"|(?P<latin>{LETTER}+(?:(?:::|->|['’./:\\@=+#&~-]){LETTER}+)*(?:\+\+|\#)?)"
    rf"|(?P<han>[{HAN}]+)"
    rf"|(?P<syllables>[{KANA}]+|[{HANGUL}]+)"
    r"|(?P<emoji>[\u2600-\u27bf\U0001f1e6-\U0001f1ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff])"
)
_ASCII_TOKEN = lazy_pattern(r"[a-z0-9_]+(?:(?:::|->|['./:\\@=+#&~-])[a-z0-9_]+)*(?:\+\+|\#)?")
_PART = lazy_pattern(rf"(?:(?!_){LETTER})+")
_CONTRACTION = lazy_pattern(r"['’](?:s|re|ve|ll|d|m)$|\A.*n['’]t$")
_URL_HOST = lazy_pattern(r"[a-z]+://(?:[^/@\s]*@)?(?:www\.)?([^/:?#\s]+)")
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
    if len(text) <= READ_LIMIT and text.isascii():
        return text.lower()
    return fold(text[:READ_LIMIT])[: 2 * READ_LIMIT]


def segment(run: str) -> tuple[str, ...]:
    """Return a run of Chinese characters cut into words."""
    return _cut(run) if len(run) <= _RUN_KEPT else tuple(_segmenter().cut(run))


@lru_cache(maxsize=1 << 10)
def _cut(run: str) -> tuple[str, ...]:
    """Cut a short run once for the keywords and the names of a message, and phrases that return once for all."""
    return tuple(_segmenter().cut(run))


@lru_cache(maxsize=16)
def _tokens(folded: str) -> Sequence[tuple[str | None, str]]:
    """Return the kind and the text of each token, in order. Keywords and words of a message share them."""
    if folded.isascii() and "://" not in folded:
        return [("latin", token) for token in _ASCII_TOKEN.findall(folded)]
    return [(match.lastgroup, match.group()) for match in _TOKEN.finditer(folded)]


def words(text: str) -> list[str]:
    """Return the words of a text in order, repeats kept, for search and similarity.

    Words are folded, English lightly stemmed, stop words of both languages dropped. A technical token, file name,
    version or URL is kept whole and followed by its parts. A Chinese word is preceded by the shorter words inside it;
    runs of single characters also give pairs. Emoji are words.
    """
    found: list[str] = []
    for kind, token in _tokens(head(text)):
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
    """Return up to 32 distinct keywords in order of appearance.

    English words keep their folded surface form except that plurals become singular, so that the same word matches and
    stays readable; technical tokens stay whole; a URL gives its host; Chinese words are those of the segmenter. Stop
    words of both languages, lone digits and emoji are omitted.
    """
    found: dict[str, None] = {}
    for kind, token in _tokens(head(text)):
        for keyword in _latin_keyword(token) if kind == "latin" else _keywords_of(kind, token):
            found[keyword] = None
            if len(found) == MAX_KEYWORDS:
                return tuple(found)
    return tuple(found)


def _keywords_of(kind: str | None, token: str) -> Sequence[str]:
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
    for word in _segmenter().cut_for_search(run):
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
_ABBREVIATION = lazy_pattern(r"(?:^|[\s(])(?:e\.g|i\.e|mr|mrs|ms|dr|prof|vs|cf|no|approx|st|[a-z])\.$", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, stripped, each with its closing punctuation, without blank ones.

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
    starts = [0, *(one.start() for one in GRAPHEME.finditer(text[: max(n, 0) + 1]))]
    return text[: starts[-1]]


_HAN_CHARACTER = lazy_pattern(f"[{HAN}]")
_LATIN_WORD = lazy_pattern(r"[A-Za-z\u00c0-\u024f]+")


def language(text: str) -> Literal["zh", "en"]:
    """Return 'zh' if there are at least as many Chinese characters as Latin words, else 'en' (also for an empty
    text)."""
    text = text[:READ_LIMIT]
    han = len(_HAN_CHARACTER.findall(text))
    return "zh" if han and han >= len(_LATIN_WORD.findall(text)) else "en"


_CLOSING = r"\"'”’)\]}!~."
# Each run of closing marks is read once, from its beginning.
_ASKED = lazy_pattern(rf"(?<![?{_CLOSING}])[{_CLOSING}]*+\?[?{_CLOSING}]*+(?=\s|$|[{HAN}])")
_OPENERS = lazy_pattern(
    rf"(?:^|[.!?;\n,:] {{0,3}}|\b{lexicon.forms('before_question', 'en')}\b,?\s{{1,3}})"
    rf"{lexicon.forms('question_opening', 'en')}\b"
)
_CALLS = lexicon.pattern("call")
_CHINESE_ASKED = lazy_pattern(lexicon.alternatives("question", "zh"))


def is_question(text: str) -> bool:
    """Return True if the text is a question, with or without a question mark."""
    return asks(head(text))


def asks(folded: str) -> bool:
    """Return `is_question` of a text that is folded already."""
    if "?" in folded and _ASKED.search(folded):
        return True
    if not folded.isascii() and _CHINESE_ASKED.search(folded):
        return True
    return bool(_OPENERS.search(folded) or _CALLS.search(folded))


_THANKS_HINT = lazy_pattern(r"[谢謝]|th(?:an|n?x)|ty|tnx|cheers|appreciated|辛苦了|3q")
_THANKS = lexicon.pattern("thanking")
_GREETING = lazy_pattern(rf"[\s\W]*(?:{lexicon.alternatives('greeting')})")

_REQUEST = lazy_pattern(rf"(?:^|[,.!;:~。\s])\s{{0,3}}(?:{lexicon.alternatives('request')})")


def is_thanks(text: str) -> bool:
    """Return True if the text thanks somebody; thanks in advance do not count."""
    return thanks(head(text))


def thanks(folded: str) -> bool:
    """Return `is_thanks` of a text that is folded already."""
    return bool(_THANKS_HINT.search(folded) and _THANKS.search(folded))


def is_greeting(text: str) -> bool:
    """Return True if the text begins with a greeting."""
    return greets(head(text))


def greets(folded: str) -> bool:
    """Return `is_greeting` of a text that is folded already."""
    return bool(_GREETING.match(folded))


def requests(folded: str) -> bool:
    """Return True if a clause of a folded text asks for something without being a question."""
    return _REQUEST.search(folded) is not None


_MAX_TERM = 64
_RUN = lazy_pattern(
    rf"(?P<latin>{LETTER}+(?:['’]{LETTER}+)*)|(?P<han>[{HAN}]+)|(?P<syllables>[{KANA}]+|[{HANGUL}]+)"
    r"|(?P<emoji>[\u2600-\u27bf\U0001f300-\U0001f3fa\U0001f400-\U0001faff])"
)
_ASCII = lazy_pattern(r"[a-z0-9_]+(?:'[a-z0-9_]+)*")
_CONTRACTED = lazy_pattern(r"['’](?:s|t|re|ve|ll|d|m)$")

_EMPTY_WORDS = """
a about ain all also am an and any are aren as at be been being but by can could couldn d did didn do does doesn doing
don for from had hadn has hasn have haven having he her here hers him his how i if in into is isn it its just let ll m
me mine my no not of on onto or our ours re s shall she should so some t than that the their theirs them then there
these they this those to too up upon us ve was wasn we were weren what when where which who whom whose why will with
won would wouldn yes you your yours
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_EMPTY_HAN = frozenset("的了是我你您他她它在有和与與就不都也很到说說要去会會着著没沒这這那么麼吗嗎呢吧啊呀哦嗯")


@lru_cache(maxsize=1 << 14)
def rarity(having: int, texts: int) -> float:
    """Return the rarity of a term that `having` of so many texts contain, as in BM25: ln(1 + (N - n + 0.5) /
    (n + 0.5)).

    `having` counts as `texts` if it is more."""
    found = min(having, texts)
    return math.log1p((texts - found + 0.5) / (found + 0.5))


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, repeats kept. Never raises; reads the first 20,000 characters."""
    if not text:
        return []
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


_ALIKE = 0.6
_COMPARED_CHARS = 32
_COMPARED = 200


def alike(name: str, others: Iterable[str], *, most: int = 3) -> list[str]:
    """Return those of some names that a misspelt one may mean, the likeliest first: similar ones, then those that
    contain it. Reads the first 32 characters of each, and at most 200 names."""
    compared: dict[str, list[str]] = {}
    for other in islice(others, _COMPARED):
        compared.setdefault(fold(other[:_COMPARED_CHARS]), []).append(other)
    wanted = fold(name[:_COMPARED_CHARS])
    found = get_close_matches(wanted, compared, n=most, cutoff=_ALIKE) if wanted else []
    found += [one for one in compared if len(wanted) > 1 and wanted in one and one not in found]
    return [other for one in found for other in compared[one]][:most]


_MIN_ROOT = 5


def roots(text: str) -> list[str]:
    """Return the terms of a text without the final i that the stemmer leaves of a y, so that allergy meets allergic."""
    return [term[:-1] if term[-1] == "i" and len(term) > _MIN_ROOT else term for term in terms(text)]
