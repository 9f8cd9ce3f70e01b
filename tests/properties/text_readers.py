"""Every public function that reads a text, as a call of one text; and those that read names or other short words."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import roomlore
from roomlore.core import (
    analysis,
    dialogue,
    identity,
    indexed,
    link_traits,
    mentions,
    naming,
    plain,
    query,
    quotes,
    speaking,
)
from roomlore.core import terms as search_terms
from roomlore.core import text as core_text
from roomlore.core.evolution import answers, asking, guards, lexing, likeness, particulars, succession
from roomlore.core.evolution import finding as evolution_finding
from roomlore.core.evolution.offline import alike, phrasing, reading
from roomlore.core.facts import facts_of
from roomlore.core.foreign import give_back
from roomlore.core.memory import asking as memory_asking
from roomlore.core.memory import extraction, intake, scoring, words_diff
from roomlore.core.memory import reading as memory_reading
from roomlore.core.models import MessageFeatures, Role, StoredMessage
from roomlore.core.privacy import copies, traces
from roomlore.core.privacy import messages as privacy_messages
from roomlore.core.recall import rendering, topic, words
from roomlore.core.recall.models import Said as RecallSaid
from roomlore.core.search import FactRows
from roomlore.core.sessions import turns
from roomlore.core.summary import answers as summary_answers
from roomlore.core.summary import choice, clauses, cues, cutting, units
from roomlore.core.summary import quotes as summary_quotes
from roomlore.core.when import chinese, time_spans
from roomlore.importers import irc, items, json_lines, whatsapp_dates
from roomlore.importers.formats import open_import
from roomlore.surfaces import marks
from roomlore.surfaces.console import inert
from roomlore.surfaces.mcp import fitting

Reader = Callable[[str], object]

_NOW = datetime(2024, 5, 1, tzinfo=UTC)
_PEOPLE = analysis.Participants.of({"anna": "Anna Lindt", "u2": "周雨桐", "bob_": "[bob]|away"})
_NAMES = particulars.Names(["Anna", "周雨桐"], ["So Anna met Ben."])
_NONE = np.zeros(0, np.int64)
_FACTS = facts_of(FactRows(**{one.name: _NONE for one in fields(FactRows)}), revision=0)
_VAULT = "the vault opens with 7319"
_TRACES = traces.Traces("anna", [_VAULT, "saying something long enough"], ["Anna Lindt"])
_TAKEN = privacy_messages.Taken(linked=True, called=True)


def _message(text: str, role: Role = Role.USER) -> StoredMessage:
    return StoredMessage(id="m", room_id="r", sender_id="anna", text=text, sent_at=_NOW, arrival=1, role=role)


def _count(texts: Sequence[str]) -> list[int]:
    return [len(text) // 4 + 1 for text in texts]


def _speaker(text: str) -> str:
    people = {"anna": "Anna", "u2": "周雨桐"}
    return speaking.Speakers(people, agents=("a",)).line(_message(text), text)


def _conversation(text: str) -> str:
    return memory_reading.as_conversation([_message(text)], quoted={}, people={})


def _imported(form: str, *heads: str) -> Reader:
    """Reads files of this format: each head, with the text in it as JSON or as it is, and the text again behind it."""

    def read(text: str) -> int:
        found = 0
        for head in heads:
            written = head.replace("JSON", json.dumps(text)).replace("TEXT", text) + text
            with TemporaryDirectory() as folder:
                path = Path(folder, "room.json")
                path.write_bytes(written.encode("utf-8", "surrogatepass"))
                with open_import(path, form, day="2024-05-01") as items:
                    found += len(list(items))
        return found

    return read


IMPORTERS: dict[str, Reader] = {
    "jsonl": _imported("jsonl", '{"id": "1", "room_id": "r", "sender_id": "a", "text": JSON}\n'),
    "openai": _imported("openai", '{"messages": [{"role": "user", "content": JSON}, {"role": "user", "content": '),
    "chatgpt": _imported("chatgpt", '[{"title": JSON, "mapping": {"a": {"id": "a", "message": '),
    "irc": _imported("irc", "[12:00] <anna> TEXT\n[12:01] ", "[12:00] * ", "[12:00] <", "--- Log opened Mon Jan 01 "),
    "telegram": _imported("telegram", '{"name": "r", "type": "x", "messages": [{"id": 1, "type": "message", "text": '),
    "discord": _imported("discord", '{"guild": {}, "channel": {"id": "1"}, "messages": [{"id": "1", "content": JSON}'),
    "whatsapp": _imported(
        "whatsapp",
        "1/2/24, 12:00 - Anna: TEXT\n1/2/24, 12:00 - ",
        "1/2/24, 12:00 - Anna: <TEXT>\n1/2/24, 12:00 - Ben: <",
    ),
    "lark": _imported("lark", '{"data": {"items": [{"message_id": "1", "body": {"content": JSON}}, '),
}


READERS: dict[str, Reader] = {
    "core.analysis:Participants.see": lambda text: analysis.Participants().see(text, text),
    "core.analysis:analyse": lambda text: analysis.analyse(_message(text), _PEOPLE),
    "core.dialogue:sounds_like_agent": dialogue.sounds_like_agent,
    "core.dialogue:utterances": lambda text: dialogue.utterances(f"{text}\nAnna: {text}"),
    "core.evolution.answers:read_answer": answers.read_answer,
    "core.evolution.asking:inert": asking.inert,
    "core.evolution.asking:lines_of": asking.lines_of,
    "core.evolution.asking:says_nothing": asking.says_nothing,
    "core.evolution.finding:find": lambda text: evolution_finding.find(f'{{"action": {text}', None),
    "core.evolution.guards:clean_line": guards.clean_line,
    "core.evolution.guards:said": guards.said,
    "core.evolution.lexing:lex": lambda text: lexing.lex("{" + text, 0),
    "core.evolution.likeness:likeness": lambda text: likeness.likeness(text, f"Anna {text}"),
    "core.evolution.offline.alike:Wording.of": alike.Wording.of,
    "core.evolution.offline.phrasing:told": lambda text: phrasing.told(
        f"On 3 of 9 days with messages (2024-01-01 to 2024-02-02), 2 people talked about “{text}”, such as: “{text}”"
    ),
    "core.evolution.offline.reading:keys_of": reading.keys_of,
    "core.evolution.offline.reading:own_text": lambda text: reading.own_text(_message(text)),
    "core.evolution.offline.reading:plain": reading.plain,
    "core.evolution.particulars:Names.within": _NAMES.within,
    "core.evolution.particulars:denials": particulars.denials,
    "core.evolution.particulars:particulars": lambda text: particulars.particulars(text, _NAMES),
    "core.evolution.particulars:turns": particulars.turns,
    "core.evolution.particulars:without_particulars": lambda text: particulars.without_particulars(text, _NAMES),
    "core.evolution.succession:Talk.of": lambda text: succession.Talk({"m1": f"Anna: {text}"}, [text]).of(text).words,
    "core.foreign:give_back": lambda text: give_back({"raw": {"text": None}, "text_at": ["text"]}, text),
    "core.identity:content_hash": lambda text: identity.content_hash(_message(text)),
    "core.indexed:indexed_words": lambda text: indexed.indexed_words(_message(text)),
    "core.indexed:passage": lambda text: indexed.passage(_message(text)),
    "core.link_traits:read": lambda text: link_traits.read(_message(text), MessageFeatures(addressed=("anna",))),
    "core.link_traits:stemmed": link_traits.stemmed.__wrapped__,
    "core.memory.asking:read_question": lambda text: memory_asking.read_question(text, of_group=True),
    "core.memory.extraction:fallback": extraction.fallback,
    "core.memory.extraction:kept": lambda text: extraction.kept(f"enough of it {text}", instructions="Write a summary"),
    "core.memory.intake:is_longer": lambda text: intake.is_longer(text, 4_000),
    "core.memory.intake:normal": intake.normal,
    "core.memory.reading:as_conversation": _conversation,
    "core.memory.reading:is_injected": lambda text: memory_reading.is_injected(_message(text, Role.SYSTEM)),
    "core.memory.reading:own_words": lambda text: memory_reading.own_words(_message(text)),
    "core.memory.scoring:is_dense_script": scoring.is_dense_script,
    "core.memory.words_diff:words_diff": lambda text: words_diff.words_diff(text, f"{text[1:]}!"),
    "core.mentions:find_mentions": lambda text: mentions.find_mentions(text, _PEOPLE.names),
    "core.naming:naming_of": lambda text: naming.naming_of([text]),
    "core.plain:storable": plain.storable,
    "core.privacy.copies:without_copies": lambda text: copies.without_copies(text, [f"{text[:99]}Anna", "> the vault"]),
    "core.privacy.messages:Taken.redact": lambda text: _TAKEN.redact(text, _TRACES),
    "core.privacy.traces:Traces.calls": lambda text: list(_TRACES.calls(text)),
    "core.privacy.traces:Traces.has_id": _TRACES.has_id,
    "core.privacy.traces:Traces.ids": lambda text: list(_TRACES.ids(text)),
    "core.privacy.traces:Traces.in_label": _TRACES.in_label,
    "core.privacy.traces:Traces.mentioned": _TRACES.mentioned,
    "core.privacy.traces:Traces.named_in": _TRACES.named_in,
    "core.privacy.traces:Traces.names_them": _TRACES.names_them,
    "core.privacy.traces:Traces.quotes": lambda text: _TRACES.quotes(f"{text} “{_VAULT}” {text}"),
    "core.privacy.traces:Traces.redact": lambda text: _TRACES.redact(text, and_names=True),
    "core.privacy.traces:Traces.redact_others": lambda text: _TRACES.redact_others(f"{text} Anna Lindt {text}"),
    "core.privacy.traces:Traces.redact_name": _TRACES.redact_name,
    "core.privacy.traces:Traces.repeated": _TRACES.repeated,
    "core.privacy.traces:Traces.repeats": lambda text: list(_TRACES.repeats(text)),
    "core.privacy.traces:Traces.tells": lambda text: _TRACES.tells(f"{text} Anna Lindt {text}"),
    "core.privacy.traces:cut_out": lambda text: traces.cut_out(text, [(0, 1), (len(text) // 2, len(text))]),
    "core.privacy.traces:has_mark": traces.has_mark,
    "core.privacy.traces:mark": traces.mark,
    "core.privacy.traces:passages": traces.passages,
    "core.privacy.traces:weight": traces.weight,
    "core.query:read_query": lambda text: query.read_query(text, facts=_FACTS),
    "core.quotes:named_author": quotes.named_author,
    "core.quotes:split_quote": quotes.split_quote,
    "core.quotes:split_quotes": lambda text: (quotes.split_quotes(text), quotes.split_quotes(f"> a\n{text}")),
    "core.recall.rendering:line_of": lambda text: rendering.line_of(text, text),
    "core.recall.topic:topic_of": lambda text: topic.topic_of([RecallSaid("user", text)], 3),
    "core.recall.words:Vocabulary.count": lambda text: words.Vocabulary().count(text),
    "core.recall.words:amount": words.amount,
    "core.speaking:Speakers.line": _speaker,
    "core.speaking:inert": lambda text: speaking.inert(f"{text}<memory"),
    "core.speaking:said": lambda text: speaking.said(_message(text)),
    "core.sessions.turns:summary_line": lambda text: turns.summary_line(text, "en"),
    "core.summary.answers:accepted": lambda text: summary_answers.accepted(
        f"enough of it {text}", max_tokens=999, count=_count
    ),
    "core.summary.answers:without_label": summary_answers.without_label,
    "core.summary.choice:extract": lambda text: choice.extract(
        text, [units.Said("Anna", text)], max_tokens=200, count=_count
    ),
    "core.summary.clauses:closed": clauses.closed,
    "core.summary.clauses:readings": clauses.readings,
    "core.summary.cues:worth": cues.worth,
    "core.summary.cutting:cut": lambda text: cutting.cut(text, len(text) // 9, _count),
    "core.summary.cutting:cut_at_sentence": lambda text: cutting.cut_at_sentence(text, len(text) // 9, _count),
    "core.summary.quotes:torn": lambda text: summary_quotes.torn(text[1:], text),
    "core.summary.quotes:unsplit": summary_quotes.unsplit,
    "core.summary.units:label_of": units.label_of,
    "core.summary.units:prose": units.prose,
    "core.summary.units:units": lambda text: units.units(text, [units.Said("Anna", text)]),
    "core.terms:terms": search_terms.terms,
    "core.text:asks": core_text.asks,
    "core.text:fitting": lambda text: core_text.fitting(text, len(text) - 1),
    "core.text:fold": core_text.fold,
    "core.text:graphemes": core_text.graphemes,
    "core.text:greets": core_text.greets,
    "core.text:head": core_text.head,
    "core.text:is_greeting": core_text.is_greeting,
    "core.text:is_question": core_text.is_question,
    "core.text:is_thanks": core_text.is_thanks,
    "core.text:keywords": core_text.keywords,
    "core.text:language": core_text.language,
    "core.text:segment": lambda text: core_text.segment(plain.storable(text)),
    "core.text:sentences": core_text.sentences,
    "core.text:singular": core_text.singular,
    "core.text:stem": core_text.stem,
    "core.text:thanks": core_text.thanks,
    "core.text:truncate": lambda text: core_text.truncate(text, len(text) - 1),
    "core.text:words": core_text.words,
    "core.when.chinese:start": lambda text: chinese.start(text, 0),
    "core.when.spans:time_spans": lambda text: time_spans(text, now=_NOW),
    **{f"importers.{name}:read": reader for name, reader in IMPORTERS.items()},
    "importers.irc:is_log_line": irc.is_log_line,
    "importers.items:excerpt": items.excerpt,
    "importers.json_lines:parse_object": json_lines.parse_object,
    "importers.whatsapp_dates:read_stamp": whatsapp_dates.read_stamp,
    "surfaces.console.inert:clipped": lambda text: inert.clipped(text, len(text) - 1),
    "surfaces.console.inert:visible": inert.visible,
    "surfaces.marks:excerpt": lambda text: marks.excerpt(text, marks.matches(text, "tea 茶叶"), 200),
    "surfaces.marks:matches": lambda text: marks.matches(text, text[:400]),
    "surfaces.mcp.fitting:sendable": fitting.sendable,
    "surfaces.mcp.fitting:shortened": lambda text: fitting.shortened(text, len(text)),
}
"""By module and name, without the package's."""

SHORT = frozenset(
    {
        "core.evolution.choosing:chosen",
        "core.evolution.offline.knowing:has",
        "core.evolution.understanding:understood",
        "core.memory.writing:InForce.all_saying",
        "core.memory.writing:InForce.saying",
        "core.privacy.traces:is_mark",
        "core.recall.words:Vocabulary.place",
        "core.recall.words:WordIndex.reach",
        "core.sessions.state:from_text",
        "core.sessions.turns:as_chat",
        "core.sessions.turns:as_text",
        "core.sessions.window:show",
        "core.when.chinese:numeral",
        "core.when.english:weekday_number",
        "importers.passages:Passage.take",
    }
)
"""They look a word up, read one word of a fixed list, parse JSON, or do nothing with a text but hand it to a reader."""

_TEXTS = frozenset(
    (
        *("text", "folded", "run", "word", "sentence", "statement", "answer", "quoted", "said", "whole", "old", "one"),
        *("summary", "previous", "line", "query"),
    )
)


def text_functions() -> Iterator[str]:
    """The public functions and methods in which a parameter named like a text is a string."""
    for found in pkgutil.walk_packages(roomlore.__path__, "roomlore."):
        if not found.name.startswith(("roomlore.core.", "roomlore.importers.", "roomlore.surfaces.marks")):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__:
                yield from (f"{found.name.partition('.')[2]}:{one}" for one in _reading(name, value))


def _reading(name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        for inner, method in vars(value).items():
            if not inner.startswith("_"):
                yield from _reading(f"{name}.{inner}", getattr(method, "__func__", method))
    elif inspect.isfunction(value):
        parameters = inspect.signature(value).parameters.values()
        if any(one.name in _TEXTS and one.annotation is str for one in parameters):
            yield name
