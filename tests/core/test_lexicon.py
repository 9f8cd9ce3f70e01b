"""The words of each language: what each entry must and must not find."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core import lexicon, safety
from roomlore.core.text import fold, has_any

ROWS = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in Path(__file__).parent.glob("lexicon/*.toml")}
ENTRIES = [(language, name) for language, entries in lexicon.languages().items() for name in entries]


@pytest.mark.parametrize(("language", "name"), ENTRIES)
def test_an_entry_finds_what_it_must_and_nothing_that_it_must_not(language, name):
    entry = lexicon.languages()[language][name]
    assert entry["why"].endswith(".")
    if "values" in entry:
        return
    rows = ROWS[language][name]
    assert rows["must"], "name a text that the entry must find"
    assert rows["must_not"], "name a text that the entry must not find"
    held, sign = lexicon.words(name, language), lexicon.pattern(name, only=language)
    for text in rows["must"]:
        assert text in held if held else sign.search(fold(text)), text
    for text in rows["must_not"]:
        assert text not in held, text
        assert not sign.search(fold(text)), text


@pytest.mark.parametrize("language", lexicon.languages())
def test_the_entries_of_a_language_are_in_order_and_name_only_each_other(language):
    entries = lexicon.languages()[language]
    assert list(entries) == sorted(entries)
    keys = ("words", "parts", "unless")
    forms = [form for entry in entries.values() for key in keys for form in entry.get(key, "").splitlines()]
    known = entries.keys() | lexicon.languages()["signs"].keys()
    assert {name for form in forms for name in re.findall(r"\{([a-z_]+)\}", form)} - known == set()
    assert ROWS[language].keys() - entries.keys() - {"judged"} == set()


JUDGEMENTS = {"safety": safety.is_safety, "stop": safety.is_stop, "decision": safety.is_decision}
JUDGED = [(language, kind) for language, rows in ROWS.items() for kind in rows.get("judged", {})]


@pytest.mark.parametrize(("language", "kind"), JUDGED)
def test_a_text_is_judged_in_its_language(language, kind):
    rows, judge = ROWS[language]["judged"][kind], JUDGEMENTS[kind]
    assert min(len(rows["must"]), len(rows["must_not"])) >= 20
    assert [text for text in rows["must"] if not judge(text)] == []
    assert [text for text in rows["must_not"] if judge(text)] == []


def test_accents_are_optional():
    allergy = lexicon.pattern("allergy", only="es")
    assert [bool(allergy.search(text)) for text in ("alérgico", "alergico", "alegre")] == [True, True, False]
    must_never = lexicon.pattern("forbidden_action", only="de")
    assert [bool(must_never.search(text)) for text in ("öffnen", "offnen", "oeffnen", "hoffen")] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("the meeting on friday is off", lexicon.always()),
        ("周五的会取消了", lexicon.always()),
        ("Los Angeles is where we meet, no need to call", lexicon.always()),
        ("das Treffen am Freitag fällt aus", ("de", "signs")),
        ("la reunión del viernes se cancela", ("es", "signs")),
        ("a reunião de sexta foi cancelada", ("pt", "signs")),
        ("le dîner de vendredi est annulé", ("fr", "signs")),
        ("ужин в пятницу отменён", ("ru", *lexicon.always())),
        ("금요일 회식 취소됐어요", ("ko", *lexicon.always())),
        ("金曜の会食は中止です", ("ja", "en", "others", "signs")),
        ("你吃了おにぎり吗", ("ja", *lexicon.always())),
        ("決定:10時駅前集合", ("ja", *lexicon.always())),
    ],
)
def test_a_text_is_read_in_its_language(text, languages):
    assert lexicon.spoken(text) == languages


def test_a_further_language_is_no_part_of_what_is_always_read():
    assert not re.search(lexicon.alternatives("cancel"), "abgesagt")
    assert lexicon.pattern("cancel").search("das wurde leider abgesagt")
    assert not lexicon.pattern("cancellation").search("das wurde nicht abgesagt")


def test_a_language_that_lacks_an_entry_has_no_words_for_it():
    assert not re.search(lexicon.alternatives("anaesthetic"), "anaesthetic")
    assert lexicon.words("anaesthetic") == frozenset()
    assert re.search(lexicon.alternatives("cancel", "en"), "it is cancelled")
    assert not re.search(lexicon.alternatives("cancel", "zh"), "it is cancelled")


def test_whole_words_are_found_in_all_languages():
    texts = ("it is cancelled", "周六取消", "candles")
    assert [bool(lexicon.pattern("cancel").search(text)) for text in texts] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "finds"), [("grave", safety.is_grave), ("taken", safety.is_medication), ("forbidden", safety.forbids)]
)
def test_a_text_has_a_hint_of_what_it_says(name, finds):
    texts = [text for rows in ROWS.values() for text in rows.get(name, {"must": []})["must"]]
    assert [text for text in texts if not finds(fold(text))] == []


@pytest.mark.parametrize(
    ("name", "language"), [("call", "en"), ("question", "zh"), ("thanking", "en"), ("thanking", "zh")]
)
@given(drawn=st.data())
def test_every_text_of_an_entry_has_a_hint(name, language, drawn):
    text = drawn.draw(st.from_regex(lexicon.alternatives(name, language)))
    assert has_any(text, lexicon.words(f"{name}_hint"))


@pytest.mark.parametrize(
    ("kind", "must", "must_not"),
    [
        (
            "safety",
            [
                "I'm allergic to nuts, is there a dessert?",
                "Lena has diabetes. Can she eat this?",
                "我对花生过敏，有甜点吗",
                "У меня аллергия на орехи, есть десерт без них?",
                "妊娠中ですが食べても大丈夫ですか?",
                "임신 중인데 이거 먹어도 되나요?",
            ],
            [
                "Anna is allergic to nuts, isn't she?",
                "If I'm allergic to nuts, what can I eat?",
                "Is Anna allergic to nuts, or is it Ben?",
                "Who is allergic to nuts, milk or eggs?",
                "他对花生过敏，是吗？",
                "如果对花生过敏，能吃吗？",
                "Если у меня аллергия, что мне можно есть?",
                "혹시 임신 중인데 이거 드시는 분 있나요?",
            ],
        ),
        (
            "stop",
            ["Please cancel my booking, can you send me a receipt?", "Class is cancelled. Can you tell Ann?"],
            ["Should we cancel, or keep it?", "Cancel it? No, keep it."],
        ),
        (
            "decision",
            ["We decided on Friday, does that work for you?", "Договорились на пятницу. Кто везёт мангал?"],
            ["What did we decide, Friday or Monday?"],
        ),
    ],
)
def test_a_statement_beside_a_question_is_judged(kind, must, must_not):
    assert [text for text in must if not JUDGEMENTS[kind](text)] == []
    assert [text for text in must_not if JUDGEMENTS[kind](text)] == []
