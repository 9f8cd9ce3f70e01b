"""Words, keywords, sentences, graphemes and kinds of utterance, in Chinese, English and everything between."""

import time
import unicodedata

import pytest
import regex
import rjieba
from hypothesis import example, given
from hypothesis import strategies as st

from roomlore.core.text import (
    MAX_KEYWORDS,
    Memo,
    fitting,
    fold,
    graphemes,
    greets,
    head,
    is_question,
    keywords,
    language,
    segment,
    sentences,
    singular,
    stem,
    stemmed,
    terms,
    thanks,
    truncate,
    words,
)
from roomlore_testkit.case_table import all_cases

FAMILY = "👨\u200d👩\u200d👧"
FLAG = "🇨🇳"
ANYTHING = st.text(
    st.one_of(
        st.characters(codec=None),
        st.sampled_from(
            [
                *"的了过敏会议室繁體問題。，？！：＠「」 \n\t.,?!:@<>|'-_/+#…",
                "\u0301",
                "\u200d",
                "👍",
                "🏽",
                "\x00",
                "\ud800",
            ]
        ),
    ),
    max_size=60,
)


GOLDEN_WORDS = [
    ("I was running the files", ["run", "file"]),
    ("The cats' toys, boxes and classes", ["cat", "toy", "box", "class"]),
    ("make making makes", ["make"]),
    ("don't can't it's Anna's", ["anna"]),
    ("net/http", ["net/http", "net", "http"]),
    ("foo_bar.py v1.2", ["foo_bar.py", "foo", "bar", "py", "v1.2", "v1"]),
    ("C++ and C#", ["c++", "c#"]),
    ("see https://example.org/a/Guide.", ["example.org/a/guide", "exampl", "org", "guid"]),
    ("青霉素过敏", ["青霉", "霉素", "青霉素", "过敏"]),
    ("我们在会议室开会", ["会议", "会议室", "开会"]),
    ("用Python3写的接口", ["python3", "接口"]),
    ("請問繁體中文", ["繁體", "中文"]),
    ("ＡＢＣ１２３ ﬁle", ["abc123", "file"]),
    ("cafe\u0301 CAFÉ", ["café", "café"]),
    ("👍 ok 👍", ["👍", "👍"]),
    ("안녕하세요", ["안녕하세요", "안녕", "녕하", "하세", "세요"]),
    ("カタカナ", ["カタカナ", "カタ", "タカ", "カナ"]),
    ("", []),
    ("， 。 ... \n", []),
]


class TestMemo:
    def test_a_word_is_computed_once_and_a_long_one_is_not_kept(self):
        calls = []
        memo = Memo(lambda word: calls.append(word) or len(word))
        assert [memo["tea"], memo["tea"], memo["a" * 200], memo["a" * 200]] == [3, 3, 200, 200]
        assert calls == ["tea", "a" * 200, "a" * 200]

    def test_a_full_one_is_emptied(self, monkeypatch):
        monkeypatch.setattr("roomlore.core.text._MOST_KEPT", 4)
        memo = Memo(str.upper)
        assert [memo[letter] for letter in "abcdef"] == list("ABCDEF")
        assert dict(memo) == {"e": "E", "f": "F"}


class TestWords:
    def test_golden(self):
        with all_cases() as case:
            for text, expected in GOLDEN_WORDS:
                with case(repr(text)):
                    assert words(text) == expected

    def test_one_stem_for_all_forms(self):
        for family in ("install installs installed installing", "update updated updating", "code coded coding codes"):
            assert len({stem(form) for form in family.split()}) == 1, family

    @pytest.mark.parametrize(
        "family",
        [
            "organisation organization organise organizing organised",
            "colour color colours colored colourful",
            "favourite favorite",
            "centre center centres centers",
            "catalogue catalog",
            "defence defense defensive",
            "licence license",
            "analyse analyze analysed",
            "grey gray",
            "programme program programmes",
            "precise precisely precision",
            "revise revision",
            "summarise summarize summarization",
            "advertise advertisement",
            "promise promising promised",
        ],
    )
    def test_british_and_american_spelling_have_one_stem(self, family):
        assert len({stemmed(form) for form in family.split()}) == 1
        assert len({term for form in family.split() for term in terms(form)}) == 1

    def test_spelling_leaves_other_words(self):
        words = "four hours your tour prise size citizen acre fence vogue"
        assert stemmed("flour") != stemmed("floor")
        assert [stemmed(word) for word in words.split()] == [
            "four",
            "hour",
            "your",
            "tour",
            "prize",
            "size",
            "citizen",
            "acr",
            "fenc",
            "vogu",
        ]

    def test_stems_leave_what_only_looks_like_a_suffix(self):
        for word in ("string", "thing", "need", "speed", "bus", "this", "status", "glass", "x86", "été"):
            assert stem(word) == word

    def test_unknown_characters_still_match_in_pairs(self):
        assert "鱻" in words("鱻龘龘")
        assert set(words("鱻龘")) & set(words("吃鱻龘了"))

    @given(st.lists(st.sampled_from([*"az09_ -'.:/\\@=+#&~>?(\n\x1a", "://", "http"])).map("".join))
    @example("c++ c# std::vector a->b can't user's x.y/z_1 q=2&r")
    def test_plain_ascii_is_read_as_it_is_beside_other_text(self, text):
        for read in (words, keywords, terms):
            assert list(read(f"{text}\n好吃")[: len(read(text))]) == list(read(text))

    @given(ANYTHING)
    @example("\u0345" * 40)
    def test_any_text_gives_words_without_spaces(self, text):
        assert all(word and not word.isspace() for word in words(text))

    @given(ANYTHING)
    def test_compatible_forms_read_alike(self, text):
        assert words(unicodedata.normalize("NFKC", text)) == words(unicodedata.normalize("NFKC", fold(text)))


class TestKeywords:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("How do I install the files of net/http v1.2?", ("install", "file", "net/http", "v1.2")),
            ("青霉素过敏怎么办", ("青霉素", "过敏")),
            ("libfoo.so fails with E1234 and 404", ("libfoo.so", "fail", "e1234", "404")),
            ("file files File", ("file",)),
            ("https://user@www.example.org:80/x?y=1", ("example.org",)),
            ("这个用 Docker 部署，端口 8080", ("docker", "部署", "端口", "8080")),
            ("and/or 12 a", ()),
            ("🎉🎉", ()),
        ],
    )
    def test_golden(self, text, expected):
        assert keywords(text) == expected

    @given(ANYTHING)
    def test_distinct_and_few(self, text):
        found = keywords(text)
        assert len(found) == len(set(found)) <= MAX_KEYWORDS
        assert all(found)

    def test_stops_at_the_limit_in_order_of_appearance(self):
        assert keywords(" ".join(f"word{n}x" for n in range(100))) == tuple(f"word{n}x" for n in range(MAX_KEYWORDS))

    def test_singular(self):
        pairs = {"queries": "query", "boxes": "box", "caches": "cache", "classes": "class", "bus": "bus", "is": "is"}
        assert {word: singular(word) for word in pairs} == pairs


class TestSentences:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("One. Two? Three!", ["One.", "Two?", "Three!"]),
            ("先看日志。再重启！好了吗？", ["先看日志。", "再重启！", "好了吗？"]),
            ("他说：“走吧。”然后走了", ["他说：“走吧。”", "然后走了"]),
            ("Use v1.2 of lib.so, e.g. this one. Done", ["Use v1.2 of lib.so, e.g. this one.", "Done"]),
            ("first line\nsecond line\n\n", ["first line", "second line"]),
            ("等等……然后呢", ["等等……", "然后呢"]),
            ("", []),
            (" \n ", []),
        ],
    )
    def test_golden(self, text, expected):
        assert sentences(text) == expected

    @given(ANYTHING)
    def test_nothing_but_space_is_lost(self, text):
        assert "".join("".join(sentences(text)).split()) == "".join(text.split())


class TestGraphemes:
    @pytest.mark.parametrize(
        ("text", "count"),
        [
            ("", 0),
            ("abc", 3),
            ("过敏", 2),
            ("e\u0301", 1),
            (FAMILY, 1),
            (FLAG * 2, 2),
            ("👍🏽!", 2),
            ("a\r\nb", 3),
            ("각", 1),
        ],
    )
    def test_count(self, text, count):
        assert graphemes(text) == count

    @pytest.mark.parametrize(
        ("text", "n", "expected"),
        [
            ("过敏史", 2, "过敏"),
            (f"a{FAMILY}b", 2, f"a{FAMILY}"),
            ("e\u0301e\u0301", 1, "e\u0301"),
            (FLAG + FLAG, 1, FLAG),
            ("abc", 9, "abc"),
            ("abc", 0, ""),
            ("abc", -1, ""),
        ],
    )
    def test_truncate(self, text, n, expected):
        assert truncate(text, n) == expected

    @given(ANYTHING, st.integers(0, 70))
    def test_truncation_never_cuts_inside_a_grapheme(self, text, n):
        cut = truncate(text, n)
        assert regex.findall(r"\X", cut) == regex.findall(r"\X", text)[:n]
        assert graphemes(cut) == min(n, graphemes(text))


QUESTIONS = [
    "How do I mount it",
    "any idea why it fails",
    "anyone know a good editor",
    "hi, is there a way to undo this",
    "can you paste the log",
    "really?",
    "what?!",
    "见过这个报错吗",
    "請問怎麼解決",
    "怎么配置代理",
    "这个能不能用",
    "有没有人知道",
    "谁有多余的线",
    "几点开会呢",
    "为什么连不上？",
    "这样可以么",
]


STATEMENTS = [
    "It works now",
    "when I do that it fails",
    "see http://example.org/?q=1 for more",
    "do this first",
    "那么多人",
    "什么都没有",
    "没什么",
    "怎么都行",
    "我知道了",
    "已经好了",
    "",
]


class TestUtterances:
    def test_questions(self):
        with all_cases() as case:
            for text in QUESTIONS:
                with case(text):
                    assert is_question(text)

    def test_statements(self):
        with all_cases() as case:
            for text in STATEMENTS:
                with case(text):
                    assert not is_question(text)

    @pytest.mark.parametrize("text", ["thanks!", "ok thx", "Thank you so much", "谢谢大家", "多謝", "bob: ty"])
    def test_thanks(self, text):
        assert thanks(head(text))

    @pytest.mark.parametrize("text", ["thanks in advance", "no thanks", "empty", "先谢谢", "than this"])
    def test_no_thanks(self, text):
        assert not thanks(head(text))

    @pytest.mark.parametrize("text", ["Hello all", "hi", "good morning", "大家好，新人报到", "早", "您好", "哈喽"])
    def test_greetings(self, text):
        assert greets(head(text))

    @pytest.mark.parametrize("text", ["history", "say hi to him", "早就好了", "不是你好我好", ""])
    def test_no_greetings(self, text):
        assert not greets(head(text))

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("帮我 review 一下 PR", "zh"),
            ("I live in 北京 now", "en"),
            ("用Kubernetes部署nginx", "zh"),
            ("", "en"),
            ("123 👍", "en"),
        ],
    )
    def test_language(self, text, expected):
        assert language(text) == expected


HOSTILE = {
    "one word": "a" * 1_000_000,
    "emoji": "😀" * 1_000_000,
    "families": FAMILY * 200_000,
    "combining marks": "a" + "\u0301\u0316" * 500_000,
    "other marks": "\U0001e944\u0711" * 500_000,
    "expanding": "\ufdfa" * 1_000_000,
    "newlines": "\n" * 1_000_000,
    "Chinese": "中国人民" * 250_000,
    "dots": "a." * 500_000,
    "quotes": "。”" * 500_000,
    "question marks": "?)" * 500_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_take_linear_time(kind):
    text = HOSTILE[kind]
    begun = time.thread_time()
    for reading in (words, keywords, is_question, head, language, sentences, graphemes):
        reading(text)
    truncate(text, 500_000)
    assert time.thread_time() - begun < 5


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        ("abc", 2, "ab"),
        ("群聊", 5, "群聊"),
        ("a\u0301b", 2, "a\u0301"),
        ("a\u0301b", 1, ""),
        ("ab" + "\u0301" * 99, 50, "a"),
        ("x👩‍👩‍👧‍👦", 7, "x"),
        ("abc", 0, ""),
        ("e\u0301", -1, ""),
    ],
)
def test_what_fits_ends_with_a_whole_character(text, n, expected):
    assert fitting(text, n) == expected


def test_chinese_is_cut_with_the_dictionary_that_rjieba_has_read(monkeypatch):
    """An instance of our own reads it a second time."""
    monkeypatch.setattr(rjieba, "cut", lambda run: [run[:4]])
    assert segment("我们今天去哪里" * 100) == ("我们今天",)
