"""Times in questions: other days and zones to ask on, positions, any text at all, and how near a message is."""

import time
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from when_rows import NOW, meaning

from roomlore.core.dates import FAR_PAST, MAX_SPANS, TimeSpan, closeness, moment
from roomlore.core.dates.spans import time_spans
from roomlore_testkit.case_table import all_cases

SHANGHAI = ZoneInfo("Asia/Shanghai")
NEW_YORK = ZoneInfo("America/New_York")


def on(year, month, day, hour=12):
    return datetime(year, month, day, hour, tzinfo=UTC)


DAYS_ASKED = [
    (on(2024, 6, 16), "last Friday", "2024-06-14 2024-06-15"),
    (on(2024, 6, 16), "上周五", "2024-06-07 2024-06-08"),
    (on(2024, 6, 16), "last weekend", "2024-06-08 2024-06-10"),
    (on(2024, 6, 14), "on Friday", "2024-06-07 2024-06-08"),
    (on(2024, 6, 17), "last week", "2024-06-10 2024-06-17"),
    (on(2024, 6, 17), "上周日", "2024-06-16 2024-06-17"),
    (on(2024, 1, 1), "yesterday", "2023-12-31 2024-01-01"),
    (on(2024, 1, 1), "上个月", "2023-12-01 2024-01-01"),
    (on(2024, 1, 1), "last quarter", "2023-10-01 2024-01-01"),
    (on(2024, 1, 20), "this winter", "2023-12-01 2024-03-01"),
    (on(2024, 1, 20), "last winter", "2022-12-01 2023-03-01"),
    (on(2024, 3, 31), "a month ago", "2024-02-14 2024-03-16"),
    (on(2024, 2, 29), "a year ago", "2022-08-30 2023-08-30"),
    (on(2023, 6, 12), "Feb 29", "2020-02-29 2020-03-01"),
    (on(2023, 6, 12), "2月29日", "2020-02-29 2020-03-01"),
    (on(2024, 5, 3), "on May 7", "2023-05-07 2023-05-08"),
    (on(2024, 5, 3), "5月底", "2023-05-21 2023-06-01"),
    (on(2024, 5, 3), "5月", "2024-05-01 2024-06-01"),
    (on(2024, 5, 7), "5月7号", "2024-05-07 2024-05-08"),
    (on(2024, 12, 20), "on Christmas Eve", ""),
    (on(2024, 12, 20), "last Christmas", "2023-12-24 2023-12-27"),
    (on(2024, 12, 20), "圣诞节", ""),
    (on(2024, 12, 20), "去年圣诞节", "2023-12-24 2023-12-27"),
    (on(2024, 12, 26), "at Christmas", "2024-12-24 2024-12-27"),
    (on(2024, 9, 1), "中秋", ""),
    (on(2024, 9, 18), "中秋", "2024-09-17 2024-09-18"),
    (on(2025, 2, 1), "春节", "2025-01-28 2025-02-05"),
    (on(2024, 3, 1), "last May", "2023-05-01 2023-06-01"),
    (on(2024, 5, 20), "last May", "2023-05-01 2023-06-01"),
    (on(2024, 5, 20), "next May", "2025-05-01 2025-06-01"),
    (on(2024, 1, 10), "10月到2月", "2023-10-01 2024-03-01"),
    (on(2024, 6, 11), "from Monday to Wednesday", "2024-06-10 2024-06-13"),
    (on(2024, 6, 11), "from Wednesday to Friday", "2024-06-05 2024-06-08"),
]


def test_depends_on_the_day_it_is_asked():
    with all_cases() as case:
        for now, question, expected in DAYS_ASKED:
            with case(now.date(), question):
                assert meaning(question, now=now) == expected


ENDS = [
    ("December 25", "2024-12-26", "2023-12-25"),
    ("十二月二十五日", "2024-12-26", "2023-12-25"),
    ("friday", "2024-06-15", "2024-06-07"),
    ("周五", "2024-06-15", "2024-06-07"),
    ("Wednesday", "2024-06-13", "2024-06-05"),
    ("on June 12", "2024-06-13", "2024-06-12"),
    ("in May", "2025-06-01", "2024-05-01"),
    ("月底", "2024-07-01", "2024-05-21"),
    ("国庆", "2024-10-08", "2023-10-01"),
    ("除夕", "2025-01-29", "2024-02-09"),
    ("Feb 29", "2028-03-01", "2024-02-29"),
    ("last Friday", "2024-06-08", "2024-06-07"),
    ("el viernes", "2024-06-15", "2024-06-07"),
    ("5. März", "2025-03-06", "2024-03-05"),
    ("в пятницу", "2024-06-15", "2024-06-07"),
    ("金曜日", "2024-06-15", "2024-06-07"),
]


def test_an_end_on_a_day_without_a_year_is_to_come_and_a_beginning_was():
    with all_cases() as case:
        for words, end, start in ENDS:
            with case(words):
                read = [
                    moment("x", words, now=NOW, zone=UTC, edge=edge, may_come=may_come).date().isoformat()
                    for edge, may_come in (("end", True), ("start", True), ("start", False))
                ]
                assert read == [end, start, start]


@pytest.mark.parametrize(
    ("zone", "question", "expected"),
    [
        (SHANGHAI, "昨天", "2024-06-11 2024-06-12"),
        (timezone(timedelta(hours=10)), "昨天", "2024-06-12 2024-06-13"),
        (NEW_YORK, "last night", "2024-06-11T18:00 2024-06-12T06:00"),
        (NEW_YORK, "on March 10", "2024-03-10 2024-03-11"),
    ],
)
def test_days_are_those_of_the_zone(zone, question, expected):
    assert meaning(question, zone=zone) == expected


def test_a_day_of_the_zone_is_given_in_utc():
    (span,) = time_spans("昨天", now=NOW, zone=SHANGHAI)
    assert (span.start, span.end) == (on(2024, 6, 10, 16), on(2024, 6, 11, 16))
    assert span.start.tzinfo is UTC


def test_a_day_on_which_the_clock_is_changed_is_shorter():
    (span,) = time_spans("on 10 March 2024", now=NOW, zone=NEW_YORK)
    assert span.end - span.start == timedelta(hours=23)


def test_an_hour_that_the_clock_skips_is_no_time():
    assert time_spans("2024-03-10 at 2am", now=NOW, zone=NEW_YORK) == ()


WORDS_OF_TIMES = [
    ("What did we decide last week about it?", ["last week"]),
    ("Where were you between May 1 and May 3, 2023?", ["between May 1 and May 3, 2023"]),
    ("anything since yesterday evening?", ["since yesterday evening"]),
    ("the first week of May or the end of June", ["first week of May", "end of June"]),
    ("我们２０２３年５月７日下午聊了什么", ["２０２３年５月７日下午"]),
    ("從上週一到週三誰請假了", ["從上週一到週三"]),
    ("自从上个月以来有什么新消息", ["自从上个月以来"]),
    ("İstanbul ﬁle 昨天 ½", ["昨天"]),
    ("上周 standup 说的 release 是 yesterday 吗", ["上周", "yesterday"]),
]


def test_names_the_words_that_said_so():
    with all_cases() as case:
        for question, words in WORDS_OF_TIMES:
            with case(question):
                spans = time_spans(question, now=NOW)
                assert [span.text for span in spans] == words
                assert [question[slice(*span.position)] for span in spans] == words


@pytest.mark.parametrize(
    "question",
    [
        "What will we do on Friday?",
        "We'll meet in December",
        "Are we going to meet on May 7?",
        "我们周五打算去哪",
        "国庆即将去哪里玩",
    ],
)
def test_what_may_lie_ahead_is_left_out_where_the_question_looks_ahead(question):
    assert time_spans(question, now=NOW) == ()


def test_far_past_comes_before_everything_in_any_zone():
    for zone in (UTC, SHANGHAI, NEW_YORK):
        (span,) = time_spans("before 2020", now=NOW, zone=zone)
        assert span.start == FAR_PAST


def test_gives_no_more_spans_than_it_says():
    assert len(time_spans("昨天，前天。" * 200, now=NOW)) == MAX_SPANS


WORDS = (
    "may May march 5 7th 31 2023 05 - / . : , ' 's a the of in on at to and from between since before after until by"
    " last next this past few two half week weeks month days year ago first third weekend friday Monday sun early mid"
    " end yesterday today tonight night morning pm 10:30 christmas new year's eve summer q2 second quarter 24 hours"
    " 上 下 周 个 月 年 号 日 前 后 之 五 一 十 两 半 最近 过去 昨 今 天 晚上 点 到 和 初 底 第 季度 农历 国庆"
    " 春节 二〇二三"
)
VOCABULARY = WORDS.split()
QUESTIONS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(VOCABULARY), max_size=12).map(" ".join),
    st.lists(st.sampled_from(VOCABULARY), max_size=12).map("".join),
)
MOMENTS = st.one_of(
    st.datetimes(timezones=st.just(UTC)),
    st.datetimes(datetime(1910, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
)
ZONES = st.sampled_from([UTC, SHANGHAI, NEW_YORK, timezone(timedelta(hours=-23, minutes=-59))])


@given(question=QUESTIONS, now=MOMENTS, zone=ZONES)
def test_any_text_at_any_time_gives_whole_spans_in_order(question, now, zone):
    last = 0
    for span in time_spans(question, now=now, zone=zone):
        first, end = span.position
        assert FAR_PAST <= span.start < span.end
        assert last <= first < end <= len(question)
        assert span.text == question[first:end]
        last = end


PATTERNS = (
    "1", "1 ", "1-", "2023-", "2023 ", "a ", "may ", "3 march ", "last ", "this may be ", "the first week of ",
    "between ", "to ", "for the last 3 ", "at christmas tree ", "in 2000 words ", "monday ", " ", "x", "一", "十",
    "昨", "前", "上", "上周边", "5月初五", "5月", "每周一", "二〇二三年级", "昨天到", "最近", "年初", "中秋月饼",
    "周一",
)  # fmt: skip


def test_a_long_text_takes_no_long_time():
    with all_cases() as case:
        for pattern in PATTERNS:
            with case(pattern):
                text = (pattern * 20_000)[:20_000]
                assert min(_seconds(text) for _ in range(3)) < 0.1


@pytest.mark.parametrize(
    "question",
    [
        "How does the new deployment pipeline handle secrets for the staging cluster?",
        "我们讨论的那个关于数据库迁移的方案最后是怎么决定的？",
    ],
)
def test_a_question_without_a_time_costs_next_to_nothing(question):
    assert time_spans(question, now=NOW) == ()
    assert min(_seconds(question) for _ in range(200)) < 150e-6


def _seconds(text):
    start = time.thread_time()
    time_spans(text, now=NOW)
    return time.thread_time() - start


def span(start, end):
    return TimeSpan(start=start, end=end, text="", position=(0, 0))


def microseconds(*moments):
    return np.array([(moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1) for moment in moments])


FRIDAY = span(on(2024, 6, 7, 0), on(2024, 6, 8, 0))


def test_inside_a_span_is_near():
    at = microseconds(on(2024, 6, 7, 0), on(2024, 6, 7, 23), on(2024, 6, 8, 0))
    assert closeness([FRIDAY], at).tolist() == [1, 1, 1]


def test_halves_with_each_length_afterwards_and_eight_times_as_fast_before():
    at = microseconds(on(2024, 6, 9, 0), on(2024, 6, 10, 0), on(2024, 6, 6, 21), on(2024, 6, 6, 18))
    assert closeness([FRIDAY], at) == pytest.approx([0.5, 0.25, 0.5, 0.25])


def test_a_short_span_falls_off_over_a_day_and_a_long_one_over_a_fortnight():
    hour = span(on(2024, 6, 7, 9), on(2024, 6, 7, 10))
    since = span(FAR_PAST, on(2024, 6, 1, 0))
    assert closeness([hour], microseconds(on(2024, 6, 8, 10))) == pytest.approx([0.5])
    assert closeness([since], microseconds(on(2024, 6, 15, 0), on(2001, 1, 1))) == pytest.approx([0.5, 1])


def test_the_nearest_of_several_spans_counts():
    at = microseconds(on(2024, 5, 1), on(2024, 6, 7), on(2024, 6, 9, 0))
    other = span(on(2024, 5, 1, 0), on(2024, 5, 2, 0))
    assert closeness([other, FRIDAY], at) == pytest.approx([1, 1, 0.5])


def test_without_a_span_every_time_fits():
    assert closeness([], microseconds(NOW, on(1999, 1, 1))).tolist() == [1, 1]


@given(st.lists(st.tuples(MOMENTS, MOMENTS), max_size=4), st.lists(MOMENTS, max_size=8))
def test_closeness_is_a_share(ends, moments):
    spans = [span(min(pair), max(pair)) for pair in ends]
    near = closeness(spans, microseconds(*moments))
    assert near.shape == (len(moments),)
    assert ((near >= 0) & (near <= 1)).all()


@given(st.lists(st.timedeltas(timedelta(0), timedelta(days=4000)), min_size=2, max_size=8))
def test_later_is_never_nearer_once_the_span_is_over(after):
    at = microseconds(*(FRIDAY.end + gap for gap in sorted(after)))
    assert (np.diff(closeness([FRIDAY], at)) <= 0).all()
