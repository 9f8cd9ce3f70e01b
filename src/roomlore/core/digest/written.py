"""Digests that a model writes: the windows of talks it is shown, and its answer, checked against them."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from typing import Any

from roomlore.core.digest.talks import Talk
from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.answers import find as find_pieces
from roomlore.core.evolution.doubts import Doubts
from roomlore.core.evolution.guards import is_order
from roomlore.core.evolution.prompt import clean_line, comparison_form, find, lines_of, show_messages
from roomlore.core.evolution.requests import Rejected
from roomlore.core.evolution.wording import ParsedMaterial
from roomlore.core.patterns import lazy_pattern
from roomlore.core.text import graphemes, is_chinese, keywords, pieces_in, terms

MAX_WINDOWS = 6
_MESSAGES = 100
"""Messages of a window."""
_MAX_LINES = 3
_MAX_CITED = 4
"""Messages that a sentence cites; further ones are left out."""
_LINE, _TITLE = 400, 80
"""Graphemes of a line and of a title."""


@dataclass(frozen=True, slots=True)
class WrittenLine:
    """A sentence of a model, with the ids of the messages it cites."""

    text: str
    message_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """The text of a model about one talk. `title`: '' if it has none that can be used."""

    title: str
    lines: tuple[WrittenLine, ...]


@dataclass(frozen=True, slots=True)
class PromptWindow:
    """Talks as a model is shown them. `text`: the talks with their messages. `talks`: by handle, their numbers.
    `messages`: by handle, the id of the message and the handle of its talk."""

    text: str
    talks: Mapping[str, int]
    messages: Mapping[str, tuple[str, str]]


def windows_of(
    talks: Mapping[int, Talk], *, room_id: str, people: Mapping[str, str], zone: tzinfo, most: int | None = MAX_WINDOWS
) -> list[PromptWindow]:
    """Return the windows for these talks, by their numbers. If there are more than `most`, the last talks are in
    none."""
    parts: list[dict[int, Talk]] = []
    size = _MESSAGES
    for number, talk in talks.items():
        if size + len(talk.entries) > _MESSAGES:
            parts.append({})
            size = 0
        parts[-1][number] = talk
        size += len(talk.entries)
    return [_window(part, room_id, people, zone) for part in parts[:most]]


def _window(talks: Mapping[int, Talk], room_id: str, people: Mapping[str, str], zone: tzinfo) -> PromptWindow:
    messages = [entry.message for talk in talks.values() for entry in talk.entries]
    by_id = {message.id: message for message in messages}
    shown = show_messages(messages, room_id=room_id, quoted=by_id, people=people, zone=zone)
    names = {f"t{place}": number for place, number in enumerate(talks, 1)}
    of = {entry.message.id: name for name, number in names.items() for entry in talks[number].entries}
    held = {handle: (source.message_id, of[source.message_id]) for handle, source in shown.handles.items()}
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for handle, line in zip(held, shown.text.splitlines(), strict=True):
        lines[held[handle][1]].append(line)
    text = "\n".join(f"{name}\n" + "\n".join(lines[name]) for name in names if lines[name])
    return PromptWindow(text, names, held)


@dataclass
class _Reading:
    """An answer as far as it is read."""

    window: PromptWindow
    titles: dict[str, str] = field(default_factory=dict)
    lines: defaultdict[str, list[WrittenLine]] = field(default_factory=lambda: defaultdict(list))
    refused: list[Rejected] = field(default_factory=list)


def _read(
    answer: str,
    window: PromptWindow,
    lines: Mapping[str, str],
    take: Callable[[_Reading, Mapping[str, Any], Doubts], None],
) -> _Reading:
    """Have each piece of an answer taken, and note why it is refused if `take` raises `InvalidInput`."""
    reading = _Reading(window)
    pieces, _ = find_pieces(answer, None)
    texts = [text for piece in pieces if piece.value is not None for text in _texts(piece.value)]
    doubts = Doubts(window.text, ParsedMaterial(lines, texts), {})
    for piece in pieces:
        try:
            if piece.value is None:
                raise InvalidInput(piece.fault)
            take(reading, piece.value, doubts)
        except InvalidInput as error:
            reading.refused.append(Rejected(piece.line, piece.text[:_LINE], str(error)))
    return reading


def read_written(answer: str, window: PromptWindow) -> tuple[dict[int, Written], list[Rejected]]:
    """Return what can be used of an answer, by the numbers of the talks, and what is refused, with the reasons.

    A sentence must cite messages of one talk that the window shows, and say nothing that these do not speak of.
    """
    lines = lines_of(window.text)
    reading = _read(answer, window, lines, partial(_take, lines))
    named = set(reading.titles) | set(reading.lines)
    made = {name: Written(reading.titles.get(name, ""), tuple(reading.lines[name])) for name in named}
    return {
        window.talks[name]: written_talk for name, written_talk in made.items() if written_talk.lines
    }, reading.refused


_FEWEST, _MORE, _MOST_MORE = 3, 3, 50
"""The messages from which a thread gets a title of a model, and by how many more it is made again: by half of what it
had, within these limits."""


def is_title_due(messages: int, titled: int) -> bool:
    """Return True if a thread of so many messages needs a title. `titled`: how many it had when its title was made, 0
    if it has none."""
    if not titled:
        return messages >= _FEWEST
    return messages >= titled + min(max(_MORE, titled // 2), _MOST_MORE)


def read_titles(answer: str, window: PromptWindow) -> tuple[dict[int, str], list[Rejected]]:
    """Return the titles of an answer, by the numbers of the talks, and what is refused, with the reasons.

    A title must have a word of its talk, say nothing that its messages do not speak of, and owe nothing to a message
    that gives orders.
    """
    lines = lines_of(window.text)
    plain_lines = {handle: line for handle, line in lines.items() if not is_order(line.partition(": ")[2])}
    reading = _read(answer, window, lines, partial(_take_title, plain_lines))
    return {window.talks[name]: title for name, title in reading.titles.items()}, reading.refused


# What a reason quotes, which the log must not have; the outermost quotation marks.
_QUOTED = lazy_pattern(r"""(['"]).*\1""", re.DOTALL)
_LOGGED = 5


def reasons_for_log(refused: Iterable[Rejected]) -> dict[str, int]:
    """Return the most frequent reasons with their counts, without the words of the chat or the model that they
    quote."""
    counts = Counter(_QUOTED.sub("…", refusal.reason) for refusal in refused)
    return dict(counts.most_common(_LOGGED))


def _take_title(lines: Mapping[str, str], reading: _Reading, value: Mapping[str, Any], doubts: Doubts) -> None:
    name = find(_text(value, "talk"), {talk_name: talk_name for talk_name in reading.window.talks})
    title = _checked(_text(value, "title"), _TITLE)
    its = [handle for handle, (_, talk) in reading.window.messages.items() if talk == name and handle in lines]
    if not _telling(title) & {word for handle in its for word in _telling(lines[handle])}:
        raise InvalidInput("sentence_without_own_words")
    _believe(doubts, title, its)
    reading.titles.setdefault(name, title)


def _telling(text: str) -> set[str]:
    """Return the keywords, and the pairs of pieces of a script in which no keyword can be cut from a sentence."""
    return {*keywords(text), *(term for term in terms(text) if pieces_in(term) > 1 and not is_chinese(term))}


def _texts(value: Mapping[str, Any]) -> Iterator[str]:
    yield from (text for name in ("text", "title") if isinstance(text := value.get(name), str))


def _take(line_of: Mapping[str, str], reading: _Reading, value: Mapping[str, Any], doubts: Doubts) -> None:
    """Take a title or a sentence. Raise `InvalidInput` with the reason why not."""
    if "title" in value and "text" not in value:
        name = find(_text(value, "talk"), {talk_name: talk_name for talk_name in reading.window.talks})
        title = _checked(_text(value, "title"), _TITLE)
        its = [handle for handle, (_, talk) in reading.window.messages.items() if talk == name]
        _believe(doubts, title, its)
        reading.titles.setdefault(name, title)
        return
    cited = _cited(reading.window, value.get("evidence"))
    talks = {reading.window.messages[handle][1] for handle in cited}
    if len(talks) != 1:
        raise InvalidInput("sentence_of_several_talks")
    if all(is_order(line_of[handle].partition(": ")[2]) for handle in cited):
        raise InvalidInput("sentence_follows_order")
    text = _checked(_text(value, "text"), _LINE)
    _believe(doubts, text, cited)
    lines = reading.lines[talks.pop()]
    if len(lines) == _MAX_LINES:
        raise InvalidInput("sentences_too_many", most=_MAX_LINES)
    if comparison_form(text) in {comparison_form(line.text) for line in lines}:
        raise InvalidInput("sentence_repeats")
    lines.append(WrittenLine(text, tuple(reading.window.messages[handle][0] for handle in cited)))


def _cited(window: PromptWindow, evidence: object) -> list[str]:
    given = [evidence] if isinstance(evidence, str) else evidence
    if not isinstance(given, list) or not given:
        raise InvalidInput("sentence_without_source")
    handles = {handle: handle for handle in window.messages}
    return list(dict.fromkeys(find(str(handle), handles) for handle in given[:_MAX_CITED]))


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, str):
        raise InvalidInput("sentence_field_missing", name=name)
    return text


def _checked(given: str, most: int) -> str:
    text = clean_line(given[: 4 * most])
    if not any(character.isalnum() for character in text):
        raise InvalidInput("sentence_empty")
    if graphemes(text) > most or len(given) > 4 * most:
        raise InvalidInput("sentence_too_long", most=most)
    return text


def _believe(doubts: Doubts, text: str, cited: Sequence[str]) -> None:
    if why := doubts.of_account(text, cited):
        raise InvalidInput(why)
