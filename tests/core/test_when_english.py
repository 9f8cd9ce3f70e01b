"""Times in English questions, one line each."""

from when_rows import meaning, rows

from roomlore_testkit.case_table import all_cases

TIMES = """
What did we talk about yesterday? | 2024-06-11 2024-06-12
What did Bob say the day before yesterday about the server? | 2024-06-10 2024-06-11
what happened today | 2024-06-12 2024-06-13
what's for dinner tonight | 2024-06-12T18:00 2024-06-13T06:00
What did she say last night? | 2024-06-11T18:00 2024-06-12T06:00
What did I eat this morning | 2024-06-12T05:00 2024-06-12T12:00
What was discussed this afternoon? | 2024-06-12T12:00 2024-06-12T18:00
earlier today someone posted a link | 2024-06-12 now
just now | 2024-06-12T14:30 now
What did we decide last week? | 2024-06-03 2024-06-10
last month's report | 2024-05-01 2024-06-01
last year | 2023-01-01 2024-01-01
this week | 2024-06-10 2024-06-17
this month | 2024-06-01 2024-07-01
this year | 2024-01-01 2025-01-01
next week | 2024-06-17 2024-06-24
last quarter | 2024-01-01 2024-04-01
the week before last | 2024-05-27 2024-06-03
what did we do last Friday | 2024-06-07 2024-06-08
this Friday | 2024-06-14 2024-06-15
next Friday | 2024-06-21 2024-06-22
past Friday | 2024-06-07 2024-06-08
on Monday | 2024-06-10 2024-06-11
on Monday morning | 2024-06-10T05:00 2024-06-10T12:00
Monday night | 2024-06-10T18:00 2024-06-11T06:00
Monday? | 2024-06-10 2024-06-11
last Monday evening | 2024-06-10T17:00 2024-06-11
Tuesday last week | 2024-06-04 2024-06-05
last week on Friday | 2024-06-07 2024-06-08
Friday, May 7 | 2024-05-07 2024-05-08
Friday before 20.02.2024 | 2024-02-16 2024-02-17
over the past 3 days | 2024-06-09 now
in the last two weeks | 2024-05-29 now
the past week | 2024-06-05 now
past month | 2024-05-12 now
the last few days | 2024-06-05 now
the last 24 hours | 2024-06-11T15:30 now
last couple of months | 2024-03-12 now
3 days ago | 2024-06-09 2024-06-10
three weeks ago | 2024-05-19 2024-05-26
a month ago | 2024-04-27 2024-05-28
2 months ago | 2024-03-28 2024-04-28
a year ago | 2022-12-12 2023-12-12
4 years ago | 2019-12-13 2020-12-12
a couple of weeks ago | 2024-05-22 2024-06-05
a few days ago | 2024-06-05 2024-06-11
several months ago | 2023-11-12 2024-05-12
half an hour ago | 2024-06-12T14:56 2024-06-12T15:03
two hours ago | 2024-06-12T13:00 2024-06-12T14:00
10 minutes ago | 2024-06-12T15:18 2024-06-12T15:21
two or three weeks ago | 2024-05-22 2024-06-05
a fortnight ago | 2024-05-26 2024-06-02
the other day | 2024-06-05 2024-06-11
last weekend | 2024-06-08 2024-06-10
this weekend | 2024-06-15 2024-06-17
in May 2023 | 2023-05-01 2023-06-01
May 2023 | 2023-05-01 2023-06-01
in May | 2024-05-01 2024-06-01
in may | 2024-05-01 2024-06-01
during April | 2024-04-01 2024-05-01
since March | 2024-03-01 now
What did June say in June? | 2024-06-01 2024-07-01
When did Petra mend the fence in June? | 2024-06-01 2024-07-01
in July | 2023-07-01 2023-08-01
the December release | 2023-12-01 2024-01-01
in Dec | 2023-12-01 2024-01-01
Dec 2023 | 2023-12-01 2024-01-01
May 7 | 2024-05-07 2024-05-08
on May 7th | 2024-05-07 2024-05-08
May 7th, 2023 | 2023-05-07 2023-05-08
7 May 2023 | 2023-05-07 2023-05-08
7th of May | 2024-05-07 2024-05-08
on 5 may | 2024-05-05 2024-05-06
May 7-9 | 2024-05-07 2024-05-10
from May 7 to May 9 | 2024-05-07 2024-05-10
between 7 and 9 May | 2024-05-07 2024-05-10
7-9 May 2023 | 2023-05-07 2023-05-10
from March to May 2023 | 2023-03-01 2023-06-01
between March and May | 2024-03-01 2024-06-01
between November and January | 2023-11-01 2024-02-01
from Monday to Wednesday | 2024-06-10 2024-06-13
2023-05-07 | 2023-05-07 2023-05-08
2023/5/7 | 2023-05-07 2023-05-08
2023.5.7 | 2023-05-07 2023-05-08
13/07/2023 | 2023-07-13 2023-07-14
07/13/2023 | 2023-07-13 2023-07-14
05/05/2023 | 2023-05-05 2023-05-06
19.04.2021 | 2021-04-19 2021-04-20
2023-05 | 2023-05-01 2023-06-01
05/2023 | 2023-05-01 2023-06-01
2023-05-07 17:00 | 2023-05-07T16:45 2023-05-07T17:15
on 2023-05-07 at 5pm | 2023-05-07T17:00 2023-05-07T18:00
yesterday at 5pm | 2024-06-11T17:00 2024-06-11T18:00
at 5pm yesterday | 2024-06-11T17:00 2024-06-11T18:00
yesterday afternoon | 2024-06-11T12:00 2024-06-11T18:00
yesterday evening | 2024-06-11T17:00 2024-06-12
tomorrow morning | 2024-06-13T05:00 2024-06-13T12:00
the evening of 9 August, 2022 | 2022-08-09T17:00 2022-08-10
in the evening on 14.02.2024 | 2024-02-14T17:00 2024-02-15
on the night of 14.02.2024 | 2024-02-14T18:00 2024-02-15T06:00
in 2023 | 2023-01-01 2024-01-01
since 2019 | 2019-01-01 now
the 1990s | 1990-01-01 2000-01-01
from 2019 to 2021 | 2019-01-01 2022-01-01
in 2022 and 2023 | 2022-01-01 2024-01-01
between 2019 and 2021 | 2019-01-01 2022-01-01
early May | 2024-05-01 2024-05-11
late May 2023 | 2023-05-21 2023-06-01
mid-May | 2024-05-11 2024-05-21
early last week | 2024-06-03 2024-06-05
the end of last month | 2024-05-21 2024-06-01
at the beginning of 2023 | 2023-01-01 2023-04-01
end of 2023 | 2023-11-01 2024-01-01
mid 2023 | 2023-05-01 2023-09-01
the first week of May | 2024-05-01 2024-05-08
the last week of May 2023 | 2023-05-25 2023-06-01
first week of 2024 | 2024-01-01 2024-01-08
the first weekend of June | 2024-06-01 2024-06-03
the second Monday of May | 2024-05-13 2024-05-14
the first half of 2023 | 2023-01-01 2023-07-01
summer 2023 | 2023-06-01 2023-09-01
summer of 2023 | 2023-06-01 2023-09-01
in the summer of 2023 | 2023-06-01 2023-09-01
last summer | 2023-06-01 2023-09-01
this summer | 2024-06-01 2024-09-01
winter 2021 | 2021-12-01 2022-03-01
fall of last year | 2023-09-01 2023-12-01
spring break of 2024 | 2024-03-01 2024-06-01
Q2 2023 | 2023-04-01 2023-07-01
in Q1 | 2024-01-01 2024-04-01
2023 Q2 | 2023-04-01 2023-07-01
second quarter of 2023 | 2023-04-01 2023-07-01
since last week | 2024-06-03 now
since yesterday | 2024-06-11 now
since May | 2024-05-01 now
ever since last Friday | 2024-06-07 now
before last week | ever 2024-06-03
before May 2023 | ever 2023-05-01
after May 2023 | 2023-06-01 now
after last week | 2024-06-10 now
after yesterday's meeting | 2024-06-11 2024-06-12
until yesterday | ever 2024-06-12
by August 20, 2021 | ever 2021-08-21
shortly before 9 Feb 2024 | 2024-02-02 2024-02-09
the week before 20 August 2023 | 2023-08-13 2023-08-20
the day after Christmas | 2023-12-27 2023-12-28
two weeks before Christmas | 2023-12-07 2023-12-14
the weekend after 1 May 2024 | 2024-05-04 2024-05-06
the week of May 7 | 2024-05-06 2024-05-13
last Christmas | 2023-12-24 2023-12-27
on Christmas Eve | 2023-12-24 2023-12-25
at Christmas | 2023-12-24 2023-12-27
over Christmas 2023 | 2023-12-24 2023-12-27
on New Year's Eve | 2023-12-31 2024-01-01
Valentine's Day 2024 | 2024-02-14 2024-02-15
on Valentine's Day | 2024-02-14 2024-02-15
on Halloween | 2023-10-31 2023-11-01
on Thanksgiving | 2023-11-23 2023-11-24
last Thanksgiving | 2023-11-23 2023-11-24
at Easter | 2024-03-29 2024-04-02
May of last year | 2023-05-01 2023-06-01
in May last year | 2023-05-01 2023-06-01
Feb 29 | 2024-02-29 2024-03-01
today and yesterday | 2024-06-12 2024-06-13 | 2024-06-11 2024-06-12
yesterday and last week | 2024-06-11 2024-06-12 | 2024-06-03 2024-06-10
from yesterday to today | 2024-06-11 2024-06-13
from 1 May until now | 2024-05-01 now
since the beginning of May | 2024-05-01 now
between 10 May 2024 and 20 May 2024 | 2024-05-10 2024-05-21
on the 11th of April 2024 | 2024-04-11 2024-04-12
on May 7 last year | 2023-05-07 2023-05-08
Show me the photos from last summer | 2023-06-01 2023-09-01
Who joined us for the hike on Saturday? | 2024-06-08 2024-06-09
What did Alice send me Tuesday night? | 2024-06-11T18:00 2024-06-12T06:00
Summarise what happened between Monday and Wednesday | 2024-06-10 2024-06-13
Did we talk about this before March? | ever 2024-03-01
what was decided at the meeting on 3/15/2024? | 2024-03-15 2024-03-16
Any news since 2024-06-01? | 2024-06-01 now
What's the plan for next Tuesday? | 2024-06-18 2024-06-19
list everything from June 1 to June 10 | 2024-06-01 2024-06-11
What did Tom say about the budget in Q1 2024? | 2024-01-01 2024-04-01
What did I buy in the first week of January? | 2024-01-01 2024-01-08
Which bakery did Otto try on 9 March, 2021? | 2021-03-09 2021-03-10
How often was Petra at the swimming pool in 2022? | 2022-01-01 2023-01-01
Who minded the shop in the week before 3 March 2024? | 2024-02-25 2024-03-03
What did June tell April in March? | 2024-03-01 2024-04-01
did May come in May? | 2024-05-01 2024-06-01
see you tomorrow | 2024-06-13 2024-06-14
two days ago I lost my keys | 2024-06-10 2024-06-11
what did you say an hour ago | 2024-06-12T14:00 2024-06-12T15:00
the week after Christmas | 2023-12-27 2024-01-03
a week before Thanksgiving 2023 | 2023-11-13 2023-11-20
three days after May 7, 2024 | 2024-05-10 2024-05-11
early in 2023 | 2023-01-01 2023-05-01
early this month | 2024-06-01 2024-06-11
at the end of last week | 2024-06-08 2024-06-10
the start of this year | 2024-01-01 2024-04-01
in the second half of 2023 | 2023-07-01 2024-01-01
the last weekend of May | 2024-05-25 2024-05-27
last Monday of May | 2024-05-27 2024-05-28
Monday of last week | 2024-06-03 2024-06-04
on Wednesday last week | 2024-06-05 2024-06-06
May 7 or May 8 | 2024-05-07 2024-05-08 | 2024-05-08 2024-05-09
yesterday between 9am and 5pm | 2024-06-11 2024-06-12
yesterday from 3pm | 2024-06-11 2024-06-12
2024-05-07T10:00:00 | 2024-05-07T09:45 2024-05-07T10:15
2024-05-07 to 2024-05-09 | 2024-05-07 2024-05-10
5 May - 9 May | 2024-05-05 2024-05-10
on 5 May and 7 May | 2024-05-05 2024-05-06 | 2024-05-07 2024-05-08
Sept 5, 2023 | 2023-09-05 2023-09-06
Sep. 5 | 2023-09-05 2023-09-06
Jan. 2024 | 2024-01-01 2024-02-01
Jan 5-7 | 2024-01-05 2024-01-08
the 5th of last month | 2024-05-05 2024-05-06
since last Friday at noon | 2024-06-07T11:00 now
until last week | ever 2024-06-10
up to May 5 | ever 2024-05-06
by the end of May | ever 2024-06-01
as of yesterday | 2024-06-11 2024-06-12
before 2020 | ever 2020-01-01
after 2020 | 2021-01-01 now
in or before 2020 | ever 2020-01-01
during the 2010s | 2010-01-01 2020-01-01
in the year 2023 | 2023-01-01 2024-01-01
12 days ago | 2024-05-30 2024-06-02
yesterday's standup | 2024-06-11 2024-06-12
today's news | 2024-06-12 2024-06-13
last week's notes | 2024-06-03 2024-06-10
LAST WEEK | 2024-06-03 2024-06-10
Last Night's party | 2024-06-11T18:00 2024-06-12T06:00
the night before last | 2024-06-10T18:00 2024-06-11T06:00
earlier this week | 2024-06-10 2024-06-17
a month ago today | 2024-04-27 2024-05-28
last fall | 2023-09-01 2023-12-01
this fall | 2024-09-01 2024-12-01
next summer | 2025-06-01 2025-09-01
in the winter of 2022 | 2022-12-01 2023-03-01
winter 2021 - 2022 | 2021-12-01 2022-03-01
in late summer 2023 | 2023-08-01 2023-09-01
"""

NO_TIMES = """
the Monday meeting
every Monday
on Mondays
on Black Friday
March on Washington
May I ask something?
What may I do?
April said hi
June's dog
5 may be too many
only may 3 people enter
version 2023.5.7
05/07/2023
at 5pm
2023
in 2000 words
the 90s
in the summer
Q2
before Friday
by Friday
Christmas tree
recently
When did John go camping recently
What will we do on Friday?
What will we do in December?
When did Petra hang the new curtains?
wait a second
version 3.5 of the app
5/7 of people
call me at 555-123-4567
192.168.1.1
10.0.0.1
the last time we met
last name
last season
last day of school
last week of school
last minute changes
in the next room
24/7
9/11
week 3
past meetings
it takes 3 days
in two weeks
three days later
Sun rises
sat down
mar the surface
from April
the picture of June
after June left
May said that August would be hot
it was a summer dress, spring roll, fall asleep
The second time I asked, within 5 minutes
We have 2024 users and 2023 rows
model gpt-4-2023-03-14
python 3.11.7 released
1/2 cup of sugar
ratio 16:9 at 10:30
the last 5 messages
the next 3 steps
one last thing
past tense
this is the last one
in the past
in the future
a while ago
long ago
some time ago
What was posted on the 5th floor?
on the 5th
5 years old
his 30th birthday
New Year resolutions
happy new year
what did I get for Christmas
late in the evening
end of the week
the third quarter
on the weekend
on weekends
over the weekend
from 9am to 5pm
ever since
since when
since the accident
before the meeting
after lunch
class of 2023
2019 to 2021
compare 2022 and 2023
in 1066
year 2023
the year 2023
in '23
in 23
the fall
"""


def test_reads_the_time():
    with all_cases() as case:
        for question, expected in rows(TIMES):
            with case(question):
                assert meaning(question) == expected


def test_reads_no_time():
    with all_cases() as case:
        for question in NO_TIMES.strip().splitlines():
            with case(question):
                assert meaning(question) == ""
