"""The festivals of the Chinese calendar on the days on which they were, or will be, kept; and Easter."""

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from when_rows import meaning

from roomlore.core.dates.calendar import clear_and_bright, festival
from roomlore_testkit.case_table import all_cases


def days(text):
    return [date.fromisoformat(day) for day in text.split()]


NEW_YEARS = days("""
1985-02-20 1991-02-15 1995-01-31 2000-02-05 2005-02-09 2008-02-07 2010-02-14 2012-01-23 2014-01-31 2015-02-19 2016-02-08
2017-01-28 2018-02-16 2019-02-05 2020-01-25 2021-02-12 2022-02-01 2023-01-22 2024-02-10 2025-01-29 2026-02-17 2027-02-06
2028-01-26 2029-02-13 2030-02-03 2033-01-31 2034-02-19
""")
MOON_FESTIVALS = days("""
1978-09-17 2012-09-30 2015-09-27 2017-10-04 2018-09-24 2019-09-13 2020-10-01 2021-09-21 2022-09-10 2023-09-29 2024-09-17
2025-10-06 2026-09-25 2033-09-08
""")
DRAGON_BOATS = days("2019-06-07 2020-06-25 2021-06-14 2022-06-03 2023-06-22 2024-06-10 2025-05-31")
CLEAR_AND_BRIGHT = days("1999-04-05 2008-04-04 2012-04-04 2019-04-05 2020-04-04 2023-04-05 2024-04-04 2025-04-04")


def test_new_year():
    with all_cases() as case:
        for day in NEW_YEARS:
            with case(day):
                assert festival(day.year, 1, 1) == day


def test_fifteenth_of_the_eighth_month():
    with all_cases() as case:
        for day in MOON_FESTIVALS:
            with case(day):
                assert festival(day.year, 8, 15) == day


def test_fifth_of_the_fifth_month():
    with all_cases() as case:
        for day in DRAGON_BOATS:
            with case(day):
                assert festival(day.year, 5, 5) == day


def test_clear_and_bright():
    with all_cases() as case:
        for day in CLEAR_AND_BRIGHT:
            with case(day):
                assert clear_and_bright(day.year) == day


@given(st.integers(1921, 2099))
def test_a_year_keeps_its_shape(year):
    new_year = festival(year, 1, 1)
    assert date(year, 1, 21) <= new_year <= date(year, 2, 21)
    starts = [festival(year, month, 1) for month in range(1, 11)]
    assert all((after - before).days in (29, 30, 58, 59, 60) for before, after in pairwise(starts))
    assert (festival(year + 1, 1, 1) - new_year).days in (353, 354, 355, 383, 384, 385)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Easter 2023", "2023-04-07 2023-04-11"),
        ("Easter 2024", "2024-03-29 2024-04-02"),
        ("Easter 2000", "2000-04-21 2000-04-25"),
        ("2025年复活节", "2025-04-18 2025-04-22"),
        ("Thanksgiving 2023", "2023-11-23 2023-11-24"),
        ("Chinese New Year 2023", "2023-01-21 2023-01-29"),
    ],
)
def test_holidays_that_move(question, expected):
    assert meaning(question) == expected
