"""Patterns in what a group writes: shared links, repeated statements, recurring topics, and their wording."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import combinations, pairwise
from urllib.parse import urlsplit

from roomlore.core.evolution.offline.reading import (
    ALIKE,
    CONTAINED,
    MOST_LONGER,
    URL,
    WEEKDAY,
    Line,
    Support,
    Weights,
    Wording,
    is_distinctive,
    is_topical,
    keys_of,
)
from roomlore.core.text import HAN, asks, fold, graphemes, greets, language, thanks, truncate

_MESSAGES, _DAYS, _PEOPLE = 3, 2, 2
_LONGEST = 120
_NOTHING_WITHOUT_QUERY = frozenset(("watch", "search", "index.php", "view", "item", "playlist", "s"))


@dataclass(frozen=True, slots=True, eq=False)
class SharedLink:
    """A link shared by several people. `address`: host and path, without user, query and fragment, which may be
    personal."""

    address: str
    support: Support


def addresses(line: Line) -> Iterator[str]:
    """Yield the links of a sentence that are short enough to be shown."""
    if "://" not in line.text:
        return
    for url in URL.findall(line.text):
        try:
            parts = urlsplit(url.rstrip(".,;:!?)]}'\"*_"))
            host = (parts.hostname or "").removeprefix("www.")
        except ValueError:
            continue
        address = host + parts.path.rstrip("/")
        lost = parts.query and address.rsplit("/", 1)[-1] in _NOTHING_WITHOUT_QUERY | {host}
        if not lost and "." in host and len(address) <= _LONGEST:
            yield address


def shared_links(lines: Sequence[Line]) -> list[SharedLink]:
    """Return the links, the most shared first. Each has a fresh message among its support."""
    places: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        for address in addresses(line):
            places[address].append(line)
    found = [SharedLink(address, Support.of(held)) for address, held in places.items() if len(held) >= _MESSAGES]
    kept = [one for one in found if one.support.holds(messages=_MESSAGES, days=_DAYS, people=_PEOPLE)]
    return sorted(kept, key=lambda one: (-len(one.support.days), -len(one.support.people), one.address))


_QUOTED = 160
_NAME = 40
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b|[我咱俺]", re.IGNORECASE)
_ENGLISH_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CHINESE_DAYS = "一二三四五六日"
_DATE = r"\d{4}-\d\d-\d\d"
_SHAPES = tuple(
    re.compile(shape, re.DOTALL)
    for shape in (
        rf"On (?P<days>\d+) of \d+ days with messages \({_DATE} to {_DATE}\), (?:each of the \d+ a [A-Z][a-z]+day, )?"
        r"\d+ people "
        r"(?:talked about (?=.*+(?<=”))(?P<words>“.+?”), (?:such as|in the words of [^:“”]+): “(?P<line>.+)”"
        r"|said the same or nearly the same: “(?P<said>.+)”(?: \(as [^)“”]+ put it\))?|shared (?P<link>\S+))",
        rf"在有消息的 \d+ 天中（{_DATE} 至 {_DATE}），有 (?P<days>\d+) 天(?:（都是周.）)?、\d+ 人"
        r"(?:谈到(?=.*+(?<=”))(?P<words>“.+?”)，(?:例如|[^：“”]+的原话)：“(?P<line>.+)”"
        r"|说过同样或几乎同样的话：“(?P<said>.+)”(?:（[^（）“”]+的原话）)?|分享过 (?P<link>\S+))",
    )
)
_WORD = re.compile("“([^“”\n]+)”")


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """The content of a statement made by this engine. `days`: on how many days. One of `words`, `said` and `link` is
    set."""

    days: int
    words: tuple[str, ...] = ()
    said: str = ""
    link: str = ""


def parse_statement(statement: str) -> ParsedStatement | None:
    """Parse a statement; None if somebody else made it."""
    for shape in _SHAPES:
        if found := shape.fullmatch(statement):
            words = tuple(_WORD.findall(found["words"] or ""))
            return ParsedStatement(int(found["days"]), words, found["said"] or "", found["link"] or "")
    return None


@dataclass(frozen=True, slots=True)
class StatementWriter:
    """Phrases the findings of a reading. `days`: days with any message, in order."""

    days: Sequence[date]

    def topic(self, words: Sequence[str], line: Line, support: Support) -> str:
        if language(line.text) == "zh":
            source = f"{_name(line)}的原话" if _is_own(line) else "例如"
            return f"{self._chinese(support)}谈到{_named(words, '和')}，{source}：“{_shown(line)}”"
        source = f"in the words of {_name(line)}" if _is_own(line) else "such as"
        return f"{self._english(support)} talked about {_named(words, ' and ')}, {source}: “{_shown(line)}”"

    def repetition(self, line: Line, support: Support) -> str:
        if language(line.text) == "zh":
            author = f"（{_name(line)}的原话）" if _is_own(line) else ""
            return f"{self._chinese(support)}说过同样或几乎同样的话：“{_shown(line)}”{author}"
        author = f" (as {_name(line)} put it)" if _is_own(line) else ""
        return f"{self._english(support)} said the same or nearly the same: “{_shown(line)}”{author}"

    def link(self, address: str, support: Support) -> str:
        if language(" ".join(line.text for line in support.lines)) == "zh":
            return f"{self._chinese(support)}分享过 {address}"
        return f"{self._english(support)} shared {address}"

    def _english(self, support: Support) -> str:
        weekday = self._weekday(support)
        always = "" if weekday is None else f" each of the {len(support.days)} a {_ENGLISH_DAYS[weekday]},"
        share = f"On {len(support.days)} of {len(self.days)} days with messages ({self.days[0]} to {self.days[-1]}),"
        return f"{share}{always} {len(support.people)} people"

    def _chinese(self, support: Support) -> str:
        weekday = self._weekday(support)
        always = "" if weekday is None else f"（都是周{_CHINESE_DAYS[weekday]}）"
        share = f"在有消息的 {len(self.days)} 天中（{self.days[0]} 至 {self.days[-1]}），有 {len(support.days)} 天"
        return f"{share}{always}、{len(support.people)} 人"

    def _weekday(self, support: Support) -> int | None:
        """Return the weekday of all its days, if there are at least three and most of the room's days are others."""
        weekdays = {day.weekday() for day in support.days}
        if len(support.days) < 3 or len(weekdays) > 1:
            return None
        only = weekdays.pop()
        return only if 2 * sum(day.weekday() == only for day in self.days) <= len(self.days) else None


def _named(words: Sequence[str], between: str) -> str:
    return between.join(f"“{word}”" for word in words)


def _is_own(line: Line) -> bool:
    return bool(_FIRST_PERSON.search(line.text))


def _name(line: Line) -> str:
    return truncate(re.sub(r"[:：()（）“”]", " ", line.name), _NAME).strip() or "?"


def _shown(line: Line) -> str:
    short = truncate(line.text, _QUOTED)
    return short if short == line.text else f"{short}…"


def surface(line: Line, key: str) -> str:
    """Return the word as written in the line."""
    start, end = line.spans[key]
    return (line.text if len(line.text) == len(line.folded) else line.folded)[start:end]


def adjoining(line: Line, keys: Sequence[str]) -> str:
    """Return the words of a line as one phrase if only spaces separate them, else ''."""
    spans = sorted(line.spans[key] for key in keys)
    if any(after[0] - before[1] > 1 for before, after in pairwise(spans)):
        return ""
    between = [line.folded[before[1] : after[0]] for before, after in pairwise(spans)]
    if any(gap.strip() for gap in between):
        return ""
    return (line.text if len(line.text) == len(line.folded) else line.folded)[spans[0][0] : spans[-1][1]]


_MESSAGES, _DAYS, _PEOPLE, _BREADTH = 3, 2, 2, 5
_COMMONEST = 80
_MOST_CENTRES = 20
_SHORTEST, _LONGEST_RESTATED = 5, 160
_FEWEST_TERMS = 3
_POINTING = re.compile(
    r"(?:and |but |so |yeah,? |yes,? )?(?:it|its|it['’]s|that|that['’]s|this|these|those|they|he|she)\b|[这這那它他她]"
)
"""A sentence that means nothing without the one before it."""
_COURTESY = re.compile(
    r"\b(?:good (?:morning|afternoon|evening|night|luck)|see you|talk (?:to you )?(?:soon|later)|take care|welcome"
    r"|have an? (?:nice|good|great|lovely)|happy (?:birthday|new year|holidays)|congrat[a-z]*|well done|no worries"
    r"|keep in touch)\b"
    r"|[早晚]上好|[上中下]午好|大家好|晚安|早安|再[见見聊]|下次[见見聊]|[生节節新][日年][快愉]|恭喜|加油|欢迎|歡迎|辛苦|保持[联聯]系"
)
_MACHINE = re.compile(
    r"[{}<>=|\\]|\(\)|::|\A\W*(?:error|warn(?:ing)?|info|debug|exception|traceback|caused by|at \w+\.)\b"
    r"|\A[$#]|\A[!-~]+\Z"
)
_HAN_COMMA = re.compile(rf"(?<=[{HAN}])[，,；;]\s*")
_CONDITION = re.compile("如果|要是|除非|假如|假设|若|只要|只有|即使|就算|否则|不然|無論|无论|虽然|雖然|但")
_OPENING = re.compile(r"[^,，!！、~.。 ]{1,16}(?: all| everyone| guys| there)?[,，!！、~.。 ]+")


@dataclass(frozen=True, slots=True, eq=False)
class Repetition:
    """A repeated sentence. `line`: the sentence of the support that is nearest to the others."""

    line: Line
    support: Support
    score: float


def is_pasted(line: Line) -> bool:
    """Return True if the text looks like code, a command's output or a log. Links are no sign of it."""
    return bool(_MACHINE.search(URL.sub("", line.folded).strip()))


def is_statement(line: Line) -> bool:
    """Return True if it says something that may hold tomorrow: no question, thanks or mere greeting."""
    if not any(map(is_topical, line.spans)) or not _SHORTEST <= graphemes(line.text) <= _LONGEST_RESTATED:
        return False
    rest = _OPENING.sub("", line.folded, count=1) if greets(line.folded) else line.folded
    if len(rest) < _SHORTEST or _POINTING.match(rest):
        return False
    return not (is_pasted(line) or _COURTESY.search(rest) or greets(rest) or asks(line.folded) or thanks(rest))


def statements(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines that state something, each followed by its clauses that do; a condition is not separated from its
    clause."""
    for line in lines:
        if is_statement(line):
            yield line
        if _HAN_COMMA.search(line.text) and not _CONDITION.search(line.text):
            yield from filter(is_statement, _clauses(line))


def _clauses(line: Line) -> Iterator[Line]:
    for part in _HAN_COMMA.split(line.text):
        folded = fold(part)
        spans = {key: span for key, span in keys_of(folded).items() if key in line.spans}
        yield replace(line, text=part.strip(), folded=folded.strip(), spans=spans)


def repetitions(lines: Sequence[Line], wordings: Sequence[Wording], weights: Weights) -> list[Repetition]:
    """Return repeated statements, best first. Each has a fresh line among its support."""
    said: defaultdict[Wording, list[Line]] = defaultdict(list)
    for line, wording in zip(lines, wordings, strict=True):
        if len(wording.terms) >= _FEWEST_TERMS:
            said[wording].append(line)
    crowd = _WordingGraph(said, weights)
    found: dict[int, Repetition | None] = {}
    for at, held in enumerate(said.values()):
        if any(line.fresh for line in held) and (centre := crowd.centre(at)) not in found:
            found[centre] = _around(centre, crowd)
    return sorted(filter(None, found.values()), key=lambda one: (-one.score, one.line.text))


class _WordingGraph:
    """Wordings with their lines, and which wordings say what another says. Terms that nearly all have do not count."""

    def __init__(self, said: Mapping[Wording, list[Line]], weights: Weights) -> None:
        self.lines = list(said.values())
        self._wordings = list(said)
        self._weights = weights
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, wording in enumerate(said):
            for term in wording.terms:
                places[term].append(at)
        self._places = {term: held for term, held in places.items() if len(held) <= _COMMONEST}
        self._terms = [sorted(wording.terms & self._places.keys()) for wording in said]
        self._sizes = [weights.total(terms) for terms in self._terms]
        self.near = cache(self._near)
        self._shared = cache(self._share)

    def centre(self, at: int) -> int:
        """Return, of the wordings that say the same, the one that most others match."""
        possible = [(one, weight) for one, weight in self._shared(at).items() if weight >= ALIKE * self._sizes[one]]
        said = [(self._sameness(one, at, weight), one) for one, weight in possible]
        best = sorted((-sameness, one) for sameness, one in said if sameness >= ALIKE)[:_MOST_CENTRES]
        return max((one for _, one in best), key=lambda one: (math.fsum(self.near(one).values()), -one), default=at)

    def _near(self, at: int) -> dict[int, float]:
        """Return the wordings that say the same, including itself, each with its likeness."""
        least = ALIKE * self._sizes[at]
        possible = [(other, weight) for other, weight in self._shared(at).items() if weight >= least]
        same = {other: self._sameness(at, other, weight) for other, weight in possible}
        return {other: sameness for other, sameness in same.items() if sameness >= ALIKE}

    def _share(self, at: int) -> dict[int, float]:
        """Return the weight of the terms shared with each other wording."""
        shared: defaultdict[int, float] = defaultdict(float)
        for term in self._terms[at]:
            for other in self._places[term]:
                shared[other] += self._weights[term]
        return shared

    def _sameness(self, at: int, other: int, shared: float) -> float:
        one, two = self._sizes[at], self._sizes[other]
        if not ALIKE * one <= two <= MOST_LONGER * one or not self._wordings[at].allows(self._wordings[other]):
            return 0.0
        return shared / one if shared >= CONTAINED * one else shared / (one + two - shared)


def _around(centre: int, crowd: _WordingGraph) -> Repetition | None:
    members = crowd.near(centre)
    support = Support.of(sorted((line for one in members for line in crowd.lines[one]), key=lambda line: line.number))
    wide = len(support.days) + len(support.people) >= _BREADTH
    if not wide or not support.holds(messages=_MESSAGES, days=_DAYS, people=_PEOPLE):
        return None
    score = math.log1p(len(support.days)) * math.log1p(len(support.people)) * math.fsum(members.values()) / len(members)
    return Repetition(crowd.lines[centre][-1], support, score)


_TOPIC_MESSAGES, _TOPIC_DAYS, _TOPIC_PEOPLE = 4, 3, 2
_APART = 5
"""Words that are not adjacent must occur together in one message more than a phrase."""
_BOUND, _SHORT = 0.3, 100
_LEAST_SCORE = 1.0
_ALONE_MESSAGES, _ALONE_DAYS, _ALONE_PEOPLE, _ALONE_SHARED = 6, 4, 3, 3
_AROUND = 8
_PHRASE = 0.8
_ANSWERED, _OFTEN_SHARED, _OFTEN_ANSWERED, _FULLY_ANSWERED = 3.5, 4, 2.0, 8.0
_MOST_PAIRS = 2_000
_PAIR = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """A topic. `keys`: the words that each line of the support has, two in one sentence or one alone. `phrase`: True if
    the two are adjacent. `score`: for comparing topics."""

    keys: tuple[str, ...]
    support: Support
    phrase: bool
    score: float


def topics(lines: Sequence[Line]) -> list[Topic]:
    """Return topics, best first. Each has a fresh message among its support."""
    places = _places(lines)
    pairs = (_pair_topic(pair, places, lines) for pair in _pairs(lines, places))
    talk = _Dialogue(lines)
    fresh = sorted({key for line in lines if line.fresh for key in line.spans if key in places and is_distinctive(key)})
    alone = (talk.alone(key, places[key]) for key in fresh)
    found = [topic for topic in (*pairs, *alone) if topic and topic.score >= _LEAST_SCORE]
    return sorted(found, key=lambda topic: (-topic.score, topic.keys))


def _places(lines: Sequence[Line]) -> dict[str, set[int]]:
    """Return the lines of each word that several people use on several days."""
    places: defaultdict[str, set[int]] = defaultdict(set)
    for at, line in enumerate(lines):
        for key in line.spans:
            places[key].add(at)
    return {key: held for key, held in places.items() if len(held) >= _TOPIC_MESSAGES and _is_shared(held, lines)}


def _is_shared(held: set[int], lines: Sequence[Line]) -> bool:
    return (
        len({lines[at].day for at in held}) >= _TOPIC_DAYS and len({lines[at].sender for at in held}) >= _TOPIC_PEOPLE
    )


def _pairs(lines: Sequence[Line], places: Mapping[str, set[int]]) -> list[_PAIR]:
    """Return the pairs of words in fresh sentences that do not overlap; of too many the most frequent."""
    counts: Counter[_PAIR] = Counter()
    for line in lines:
        if line.fresh:
            keys = sorted(key for key in line.spans if key in places)
            counts.update(
                pair
                for pair in combinations(keys, 2)
                if _fits(*pair) and _is_disjoint(*(line.spans[key] for key in pair))
            )
    return sorted(counts, key=lambda pair: (-counts[pair], pair))[:_MOST_PAIRS]


def _fits(one: str, other: str) -> bool:
    topical = is_topical(one) + is_topical(other)
    return topical == 2 or (topical == 1 and (one + other).count(WEEKDAY) == 1)


def _is_disjoint(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


def _pair_topic(pair: _PAIR, places: Mapping[str, set[int]], lines: Sequence[Line]) -> Topic | None:
    """Return the topic of a pair, as a phrase if the two are nearly always adjacent."""
    one, other = pair
    both = [
        at for at in sorted(places[one] & places[other]) if _is_disjoint(lines[at].spans[one], lines[at].spans[other])
    ]
    bound = _mutual_information(len(both), len(places[one]), len(places[other]), len(lines))
    if len(both) < _TOPIC_MESSAGES or bound < _BOUND:
        return None
    beside = [at for at in both if adjoining(lines[at], pair)]
    phrase = len(beside) >= _PHRASE * len(both)
    support = Support.of(lines[at] for at in (beside if phrase else both))
    if not support.holds(messages=_TOPIC_MESSAGES if phrase else _APART, days=_TOPIC_DAYS, people=_TOPIC_PEOPLE):
        return None
    return Topic(pair, support, phrase, bound * _support_score(support))


def _support_score(support: Support) -> float:
    return math.log1p(len(support.days)) * math.log1p(len(support.people))


def _mutual_information(both: int, one: int, other: int, lines: int) -> float:
    """Return the normalised pointwise mutual information: 0 by chance, 1 if neither occurs without the other. A short
    room counts as 100 sentences, since small counts overstate chance."""
    if not both:
        return 0.0
    every = max(lines, _SHORT)
    return math.log(both * every / (one * other)) / math.log(every / both) if both < every else 0.0


def _is_name(line: Line, key: str) -> bool:
    """Return True if the word is written as a name. Chinese does not show it, nor does a word among Chinese."""
    written, start = surface(line, key), line.spans[key][0]
    return (written[0].isupper() and start > 0) or not written.isalpha() or language(line.text) == "zh"


class _Dialogue:
    """The messages of a room, to distinguish a word that people answer each other with from one that is used now and
    then. Uses by several people within a few messages are compared with the expected count."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._messages = list({line.handle: line for line in lines}.values())
        self._numbers = {line.handle: number for number, line in enumerate(self._messages)}

    def alone(self, key: str, held: set[int]) -> Topic | None:
        """Return the topic of one word, None if it does not qualify."""
        uses = {self._numbers[self._lines[at].handle]: self._lines[at] for at in sorted(held)}
        shared = self._shared_days(uses)
        if len(uses) < _ALONE_MESSAGES or shared < _ALONE_SHARED:
            return None
        support = Support.of(uses.values())
        if not support.holds(messages=_ALONE_MESSAGES, days=_ALONE_DAYS, people=_ALONE_PEOPLE):
            return None
        if 2 * sum(_is_name(line, key) for line in uses.values()) < len(uses):
            return None
        answered = self._answered(uses)
        if answered < (_OFTEN_ANSWERED if shared >= _OFTEN_SHARED else _ANSWERED):
            return None
        return Topic((key,), support, True, min(answered / _FULLY_ANSWERED, 1.0) * _support_score(support))

    def _shared_days(self, uses: Mapping[int, Line]) -> int:
        people: defaultdict[date, set[str]] = defaultdict(set)
        for line in uses.values():
            people[line.day].add(line.sender)
        return sum(len(those) > 1 for those in people.values())

    def _answered(self, uses: Mapping[int, Line]) -> float:
        """Return the excess of uses near another person's use, in standard deviations above chance."""
        share = len(uses) / len(self._messages)
        near = [self._near(number) for number in uses]
        found = sum(any(other in uses for other in others) for others in near)
        chances = [1 - (1 - share) ** len(others) for others in near]
        spread = math.sqrt(max(math.fsum(chance * (1 - chance) for chance in chances), 0.5))
        return (found - math.fsum(chances)) / spread

    def _near(self, number: int) -> list[int]:
        """Return the messages around it on the same day by others."""
        mine = self._messages[number]
        around = range(max(0, number - _AROUND), min(len(self._messages), number + _AROUND + 1))
        return [at for at in around if self._messages[at].sender != mine.sender and self._messages[at].day == mine.day]
