"""Words as the engines index them: every word is one term, and no two words are the same one."""

import re
import sqlite3
from collections import Counter
from contextlib import closing

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql, sqlite

from roomlore.core.search.hits import MAX_COUNT
from roomlore.core.search.query import indexed_words, spell
from roomlore.storage.words import MAX_LENGTH, before, spell_message
from roomlore_testkit import message

SQLITE, POSTGRES = sqlite.dialect(), postgresql.dialect()
HARD = ["", "_", "__", "_5f_", "5f", "+x", "c++", "C++", "İ", "ß", "Å", "Å", "a\u0301", "á", "\x00", "\ud800", "\x7f"]
HARD += ["'", "''", "\\", "\\'", ":*&|!()", "AND", "and", "NEAR", "%x", "部署", "ﬀ", "\u202e", "\ufeff", "\x1a", "a b"]
words = st.text(max_size=12) | st.sampled_from(HARD) | st.text(alphabet="_5fx+' \\\x00", max_size=6)


def unspell(spelled: str) -> str:
    return re.sub(r"_([0-9a-f]+)_", lambda found: chr(int(found[1], 16)), spelled)


@pytest.fixture(scope="module")
def fts5(sqlite_template):
    """A connection to an empty word index as the migrations make it."""
    with closing(sqlite3.connect(sqlite_template)) as made, closing(sqlite3.connect(":memory:")) as empty:
        made.backup(empty)
        yield empty


@pytest.fixture(scope="module")
def tsvectors(postgres_server):
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield connection


@given(words)
def test_a_spelling_can_be_read_back(word):
    assert unspell(spell(word)) == word
    assert re.fullmatch(r"[a-z0-9_\x80-\ud7ff\ue000-\U0010ffff]*", spell(word))


def test_a_word_too_long_for_an_index_has_no_spelling():
    assert len(spell("\x00" * 128)) == 4 * 128
    assert spell("a" * 129) == ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(said=st.lists(words.filter(bool), min_size=1, max_size=8))
def test_fts5_takes_each_word_as_one_term(fts5, said):
    prefix = before(255)
    text = " ".join(prefix + spell(word) for word in said)
    fts5.execute("BEGIN")
    fts5.execute("INSERT INTO message_index (rowid, words) VALUES (7, ?)", (text,))
    terms = Counter(term for (term,) in fts5.execute("SELECT term FROM message_index_terms"))
    fts5.execute("ROLLBACK")
    assert terms == Counter("ffx" + spell(word) for word in said)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=50)
@given(said=st.lists(words.filter(bool), min_size=1, max_size=8))
def test_tsvector_takes_each_word_as_one_lexeme(tsvectors, said):
    terms = ["ffx" + spell(word) for word in said]
    text = " ".join(f"'{term}':1" for term in terms)
    rows = tsvectors.execute("SELECT unnest(tsvector_to_array(%s::tsvector))", (text,)).fetchall()
    assert {term for (term,) in rows} == set(terms)


def test_a_message_is_spelled_once_a_word_or_once_a_lexeme():
    said = message(3, text="c++ 部署 deploy deploy", sender_name="ann")
    in_sqlite = spell_message(said, 17, SQLITE, said.arrival)
    in_postgres = spell_message(said, 17, POSTGRES, said.arrival)
    assert in_sqlite.words.split(" ") == [spell(word) for word in indexed_words(said)]
    assert in_sqlite.length == in_postgres.length == len(indexed_words(said))
    assert "'11xdeploy':1,2" in in_postgres.words.split(" ")


ENDLESS = {
    "rare characters": "".join(chr(0x20000 + n) for n in range(20_000)),
    "characters": "".join(chr(0x4E00 + n) for n in range(20_000)),
    "long words": " ".join(chr(0x10330 + n % 27) * 60 + chr(0x10428 + n) for n in range(40)) * 9,
    "characters that become many": "".join(chr(0x3300 + n % 88) for n in range(20_000)),
    "one word": "again " * 3_500,
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_no_message_is_more_than_postgres_holds(tsvectors, text):
    """Words that are as many, as distinct and as long as can be, in all places that are read."""
    said = message(1, text=text, sender_name=text[::-1], metadata={"caption": text[1::2] + text[::2]})
    spelled = spell_message(said, 2**25 - 1, POSTGRES, 1)
    in_sqlite = spell_message(said, 1, SQLITE, 1)
    (size,) = tsvectors.execute("SELECT length(%s::tsvector)", (spelled.words,)).fetchone()
    assert size == len(set(in_sqlite.words.split(" "))) > 0
    assert spelled.length == in_sqlite.length <= MAX_LENGTH
    assert max(int(re.split("[:,]", word)[-1]) for word in spelled.words.split(" ")) <= MAX_COUNT


def test_words_for_which_there_is_no_room_are_the_last():
    said = message(1, text=ENDLESS["rare characters"], sender_name=ENDLESS["characters"])
    kept = spell_message(said, 1, SQLITE, 1).words.split(" ")
    assert 20_000 < len(kept) < len(indexed_words(said))
    assert kept == [spell(word) for word in indexed_words(said)][: len(kept)]
