"""The vocabulary of times in English: patterns of lower-case words, and the words around them that decide."""

import re

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
# April, June and August are people too, "may" and "march" are verbs, and "sat" and "dec" may be anything.
SURE_MONTHS = frozenset(("january", "february", "july", "september", "october", "november", "december"))
SPOKEN_DAYS = {
    "day before yesterday": -2,
    "yesterday": -1,
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
    "day after tomorrow": 2,
}

MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?:(?<!may)\.(?= ?[0-9]))?"
)
WEEKDAY = (
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?"
    r"|sun(?:day)?)\b"
)
DAY = r"(?P<day>3[01]|[12][0-9]|0?[1-9])(?P<suffix>st|nd|rd|th)?"
TO_DAY = r"(?: ?(?:-|to|until|through|till|and) ?(?P<last>3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?)?"
A_YEAR = r"(?:19|20)[0-9]{2}"
YEAR = rf"(?P<year>{A_YEAR}(?![0-9])|(?:last|this|next) year\b)"
OF_YEAR = rf"(?:,? ?(?:of the |of |in )?{YEAR})?"
COUNT = (
    rf"(?P<count>[0-9]{{1,3}}|(?:a )?couple of|(?:a )?couple|a few|few|several|half an?|half|an?|{'|'.join(NUMBERS)})"
)
LOW = rf"(?:(?P<low>[0-9]{{1,3}}|{'|'.join(NUMBERS)})(?: or | to |-))?"
UNIT = r"(?P<unit>minute|min|hour|hr|day|week|fortnight|month|year|yr)s?\b"
AGO = rf"{LOW}{COUNT} {UNIT} (?:ago|back)\b(?: today\b)?"
SEASON = r"(?P<season>spring|summer|fall|autumn|winter)\b"
HOLIDAY = (
    r"(?P<holiday>new year'?s (?:eve|day)|(?:chinese |lunar )?new year|spring festival|mid-autumn festival"
    r"|dragon boat festival|valentine'?s day|easter|halloween|thanksgiving|christmas(?: eve| day)?)\b"
)
WHICH = r"(?P<which>this past|this coming|last|past|previous|this|next|coming) "
# A number that is no part of a version, a price, an address or a fraction.
ALONE = r"(?<![.,/:$#@+])(?<![0-9]-)"

START = re.compile(
    rf"""(?<![a-z0-9_])(?:
    (?P<number>[0-9])
    |(?P<month_name>(?:{"|".join(MONTHS)})[a-z]*\b)
    |(?P<which>(?:last|past|previous|this|next|coming)[ ])
    |(?P<weekday_name>(?:{"|".join(WEEKDAYS)})[a-z]*\b)
    |(?P<spoken>today|yesterday|tomorrow|tonight|day[ ](?:before|after)[ ]|other[ ]day|earlier[ ]today|just[ ]now
      |(?:week|month|year|weekend|night)[ ]before[ ]last)
    |(?P<ago>{re.sub(r"[?]P<[a-z]+>", "?:", AGO).replace(" ", "[ ]")})
    |(?P<season_name>spring|summer|fall|autumn|winter)
    |(?P<quarter_name>q[1-4]|(?:first|second|third|fourth)[ ]quarter)
    |(?P<holiday_name>new[ ]year|chinese[ ]n|lunar[ ]n|mid-a|dragon[ ]b|valen|easter|hallow|thanksg|christm)
    )""",
    re.VERBOSE,
)

_PIECE_OF = (
    r"(?:end|start|beginning|middle|half|quarters?|weeks?|weekends?|months?|days?|rest|part|night|morning) (?:of|in)"
)
_FULL_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
ENDS = re.compile(r" ?(?:[?!,;:)\"]|\.(?![0-9])|$)")
ENDS_OR_PART = re.compile(rf",? (?:morning|afternoon|evening|night)\b|{ENDS.pattern}")
DATE_FOLLOWS = re.compile(rf",? (?:{'|'.join(MONTHS)}|[0-9])")
IN = re.compile(
    r"(?:\b(?:in|during|since|throughout|until|till|early|late|mid|middle|through|[a-z]+day (?:of|in)"
    rf"|{_PIECE_OF})[ -]|\b(?:{_FULL_MONTHS})(?: and | or | to | ?- ?))$"
)
AROUND = re.compile(r"\b(?:before|after|between|around|about|by) $")
FROM = re.compile(r"\bfrom $")
LONE = re.compile(rf"{ENDS.pattern}| (?:and|or|to|until|till|through)\b| ?-")
RANGE_GOES_ON = re.compile(r" (?:to|until|till|through|and|onwards?)\b| ?-")
ON_DATE = re.compile(
    r"\b(?:on|since|before|after|by|until|till|from|to|of|through|between|around|last|this|next|[a-z]+day,?) $"
)
ON_WEEKDAY = re.compile(
    r"\b(?:(?:on|since|before|after|until|till|from|between|by) (?:the )?"
    r"|(?:(?<!every )[a-z]+day|week|month|morning|evening|night|[0-9](?:st|nd|rd|th)?)"
    r"(?: and | or | to | until | through | ?- ?|, ?))$"
)
THE = re.compile(r"\bthe $")
SOME = re.compile(r"\b(?:every|each|a|any|black|good|most|some) $")
IN_YEAR = re.compile(
    r"\b(?:(?:in|during|since|throughout|before|after|by|until|till|through|from|between|early|late|mid|around"
    rf"|{_PIECE_OF})[ -](?:the )?(?:year )?|(?:in|during|from|between) {A_YEAR} (?:and|or|to) )$"
)
COUNTED = re.compile(
    r" ?(?:[a-z]+ )?(?:words?|steps?|met(?:er|re)s?|miles?|km|kg|dollars?|euros?|yuan|people|users?|lines?|rows?"
    r"|char(?:acter)?s?|tokens?|messages?|pieces?|calories|kcal|points?|times|hours?|minutes?|seconds?|feet|bytes"
    r"|requests?|items?|units?)\b|[%$€]"
)
AT_HOLIDAY = re.compile(
    r"\b(?:on|at|over|during|since|before|after|until|till|by|around|from|to|between|and|celebrated?|spen[dt]"
    r"|(?:day|night|week|weekend|end|morning|evening) (?:of|before|after)) (?:the )?$"
)
FESTIVE = re.compile(
    r"[ -](?:trees?|gifts?|presents?|part(?:y|ies)|cards?|carols?|dinner|cake|cookies?|songs?|movies?|films?|shopping"
    r"|decorations?|lights?|markets?|island|resolutions?|costumes?|eggs?|bunny|menu|plans?|sales?|concert|show"
    r"|special)\b|'s"
)
VERSION = re.compile(r"(?:\bv|version |release |build )$")
