"""Times in questions and messages of seven languages."""

from when_languages import NO_TIMES, TIMES
from when_rows import meaning, rows

from roomlore_testkit.case_table import all_cases


def test_times():
    with all_cases() as case:
        for language, table in TIMES.items():
            for question, expected in rows(table):
                with case(language, question):
                    assert meaning(question) == expected


def test_what_only_looks_like_a_time():
    with all_cases() as case:
        for language, table in NO_TIMES.items():
            for text in table.strip().splitlines():
                with case(language, text):
                    assert meaning(text) == ""
