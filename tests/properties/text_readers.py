"""Every public function that reads a text, as a call of one text; and those that read names or other short words."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import roomlore
import roomlore_importers
from roomlore.core import (
    analysis,
    attachments,
    folding,
    intake,
    json_values,
    lexicon,
    mentions,
    privacy,
    prompt,
    safety,
    subjects,
    summary,
    transcript,
    values,
)
from roomlore.core import privacy as privacy_messages
from roomlore.core import summary as summary_answers
from roomlore.core import text as core_text
from roomlore.core import text as search_terms
from roomlore.core.dates import chinese, languages
from roomlore.core.dates.spans import time_spans
from roomlore.core.digest import points, written
from roomlore.core.digest import talks as digest_wording
from roomlore.core.evaluation import Question
from roomlore.core.evolution import answers, together, wording
from roomlore.core.evolution import answers as evolution_finding
from roomlore.core.evolution import guards as evolution_guards
from roomlore.core.evolution import prompt as asking
from roomlore.core.evolution import prompt as guards
from roomlore.core.evolution.doubts import Doubts
from roomlore.core.evolution.offline import cues, days, holding, reading, statements, succession
from roomlore.core.linking import reading as link_reading
from roomlore.core.memory import extraction, log, scoring, writing
from roomlore.core.memory import reading as memory_reading
from roomlore.core.memory import scoring as memory_asking
from roomlore.core.models import MessageFeatures, Role, StoredMessage
from roomlore.core.recall import ranking, recollection
from roomlore.core.recall.recollection import ConversationMessage
from roomlore.core.search import query
from roomlore.core.search.facts import facts_of
from roomlore.core.search.hits import FactRows
from roomlore.core.sessions import window as turns
from roomlore.core.summary import corrections, sentences
from roomlore.core.summary import sentences as summary_quotes
from roomlore.surfaces import excerpts
from roomlore.surfaces.cli import show
from roomlore_console import frame
from roomlore_importers import (
    chat_lines,
    export_files,
    irc,
    json_stream,
    wechat,
    whatsapp_content,
    whatsapp_stamps,
    whatsapp_words,
    written_dates,
)
from roomlore_importers.opening import open_import
from roomlore_integrations.payloads import give_back
from roomlore_server.mcp import answers as fitting

Reader = Callable[[str], object]

_NOW = datetime(2024, 5, 1, tzinfo=UTC)
_PEOPLE = analysis.Participants.of({"anna": "Anna Lindt", "u2": "周雨桐", "bob_": "[bob]|away"})
_NAMES = wording.Names(["Anna", "周雨桐"], ["So Anna met Ben."])
_NONE = np.zeros(0, np.int64)
_FACTS = facts_of(FactRows(**{one.name: _NONE for one in fields(FactRows)}), revision=0)
_VAULT = "the vault opens with 7319"
_TRACES = privacy.Traces("anna", [_VAULT, "saying something long enough"], ["Anna Lindt"])
_TAKEN = privacy_messages.Taken(linked=True, called=True)


def _holding(text: str) -> StoredMessage:
    """Return a message without words that holds a picture of which everything is told at length."""
    told = dict.fromkeys(("name", "caption", "file", "description"), text)
    return replace(_message(""), metadata={"caption": f"{text} {text}", "attachments": [told] * 6})


def _message(text: str, role: Role = Role.USER) -> StoredMessage:
    return StoredMessage(id="m", room_id="r", sender_id="anna", text=text, sent_at=_NOW, arrival=1, role=role)


def _count(texts: Sequence[str]) -> list[int]:
    return [len(text) // 4 + 1 for text in texts]


def _speaker(text: str) -> str:
    people = {"anna": "Anna", "u2": "周雨桐"}
    return transcript.Speakers(people, agents=("a",)).line(_message(text), text)


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
    "chatlab": _imported("chatlab", '{"chatlab": {}, "messages": [{"sender": "1", "timestamp": 1, "content": JSON}, '),
    "qq_exporter": _imported(
        "qq-exporter", '{"messages": [{"id": "1", "sender": {"uin": "1"}, "content": {"text": JSON}}, '
    ),
    "onebot": _imported("onebot", '[{"message_id": 1, "user_id": 2, "group_id": 3, "message": JSON}, '),
    "qq_text": _imported("qq-text", "2019-07-16 18:15:05 【管理员】地瓜(23)\nTEXT\n2019-07-16 18:15:06 TEXT\n"),
    "chatlog": _imported(
        "chatlog", '[{"talker": "a", "sender": "b", "time": "2024-05-01T08:00:00Z", "content": JSON}, '
    ),
    "weflow": _imported("weflow", '{"messages": [{"createTime": 1, "senderUsername": "a", "content": JSON}, '),
    "wechat_csv": _imported(
        "wechat-csv", "Time,SenderName,Sender,TalkerName,Talker,Content\n2024-05-01 08:00:00,a,b,c,d,TEXT\n"
    ),
    "wecom": _imported("wecom", '{"msgid": "1", "from": "a", "msgtype": "text", "text": {"content": JSON}}\n'),
    "lark": _imported("lark", '{"data": {"items": [{"message_id": "1", "body": {"content": JSON}}, '),
    "line": _imported(
        "line",
        "2024.01.02 Tuesday\n10:00\tAnna\tTEXT\n10:01\tTEXT\n10:02\t",
        "2024.01.02 Tuesday\n10:00 Anna TEXT\n10:01 TEXT\n10:02 ",
    ),
    "kakaotalk": _imported(
        "kakaotalk",
        "--- Monday, January 1, 2024 ---\n[Anna] [1:02 PM] TEXT\n[",
        "2024년 1월 1일 오후 1:02, Anna : TEXT\n2024년 1월 1일 오후 1:02, TEXT\n2024년 ",
        "Date,User,Message\n2024-01-01 10:00:00,Anna,TEXT\n",
    ),
    "signal": _imported(
        "signal",
        "[2024-05-01 10:00:00] Anna: TEXT\n[2024-05-01 10:00:01] ",
        "[May 01, 2024 10:00:00] <Anna> TEXT\n[May 01, 2024 10:00:00] *** TEXT\n[May ",
        '{"date": "2024-05-01 10:00:00", "sender": "a", "body": JSON, "quote": JSON}\n',
    ),
    "matrix": _imported(
        "matrix",
        '[{"type": "m.room.message", "sender": "a", "event_id": "$1", "content": {"body": JSON, '
        '"formatted_body": JSON, "m.relates_to": {"m.in_reply_to": {"event_id": "$2"}}}}, ',
    ),
    "mattermost": _imported(
        "mattermost", '{"type": "post", "post": {"team": "t", "channel": "c", "user": "u", "message": JSON}}\n'
    ),
    "rocketchat": _imported("rocketchat", '[{"ts": "2024-05-01T10:00:00Z", "username": "a", "msg": JSON}, '),
    "zulip": _imported("zulip", '{"zerver_message": [{"id": 1, "recipient": 2, "sender": 3, "content": JSON}, '),
    "googlechat": _imported("googlechat", '{"messages": [{"created_date": JSON, "text": JSON}, '),
    "meta": _imported("meta", '{"messages": [{"sender_name": "a", "timestamp_ms": 1, "content": JSON}, '),
    "teams": _imported(
        "teams",
        '[{"id": "1", "createdDateTime": "2024-05-01T10:00:00Z", "body": {"contentType": "html", "content": JSON}}, ',
        '{"conversations": [{"MessageList": [{"id": "1", "originalarrivaltime": "2024-05-01T10:00:00Z", "from": "a", '
        '"messagetype": "RichText/Html", "content": JSON}, ',
    ),
}


READERS: dict[str, Reader] = {
    "core.analysis:Participants.see": lambda text: analysis.Participants().see(text, text),
    "core.analysis:analyse": lambda text: analysis.analyse(_message(text), _PEOPLE),
    "core.mentions:sounds_like_agent": mentions.sounds_like_agent,
    "core.mentions:utterances": lambda text: mentions.utterances(f"{text}\nAnna: {text}"),
    "core.evolution.answers:read_answer": answers.read_answer,
    "core.evolution.prompt:inert": asking.inert,
    "core.evolution.prompt:lines_of": asking.lines_of,
    "core.evolution.prompt:says_nothing": asking.says_nothing,
    "core.evolution.answers:find": lambda text: evolution_finding.find(f'{{"action": {text}', None),
    "core.evolution.prompt:clean_line": guards.clean_line,
    "core.evolution.prompt:comparison_form": guards.comparison_form,
    "core.evolution.answers:lex": lambda text: answers.lex("{" + text, 0),
    "core.evolution.together:taken_apart": lambda text: together.taken_apart(
        f"{text}\n{text}", [together.ShownPerson("Anna", "", f"c1 [x] Anna: {text}")] * 2, repair=lambda one: one
    ),
    "core.evolution.together:shown_together": lambda text: together.shown_together(
        [together.ShownPerson(text, text, text)]
    ),
    "core.evolution.wording:is_one_subject": lambda text: wording.is_one_subject(f"{text} 7", f"Anna 7 {text}"),
    "core.evolution.wording:rests_on_the_same": lambda text: wording.rests_on_the_same(
        f"{text} 7",
        [wording.ParsedMessage(text, f"{text} 7")],
        f"Anna 7 {text}",
        [wording.ParsedMessage("Bo", f"7 {text}")],
    ),
    "core.evolution.wording:similarity": lambda text: wording.similarity(text, f"Anna {text}"),
    "core.evolution.wording:says_the_same": lambda text: wording.says_the_same(text, f"Anna {text}"),
    "core.evolution.wording:likeness": lambda text: wording.likeness(text, f"Anna {text}"),
    "core.evolution.offline.reading:Wording.of": reading.Wording.of,
    "core.evolution.offline.statements:parse_statement": lambda text: statements.parse_statement(
        f"Ann (2024-01-01): {text} [about {text}]"
    ),
    "core.evolution.offline.days:future_days": lambda text: list(days.future_days(text, _NOW.date())),
    "core.evolution.offline.holding:evidence": lambda text: holding.evidence(
        text, cues.sense_of(text), [], holding.Reception(agreed=0, noted=0, answers=False)
    ),
    "core.evolution.offline.days:last_named_day": lambda text: days.last_named_day(text, _NOW.date()),
    "core.evolution.offline.cues:does_it": cues.does_it,
    "core.evolution.offline.cues:manners_of": cues.manners_of,
    "core.evolution.offline.succession:corrects": succession.corrects,
    "core.evolution.offline.succession:subject_words": succession.subject_words,
    "core.evolution.offline.cues:agrees": cues.agrees,
    "core.evolution.offline.cues:acknowledges": cues.acknowledges,
    "core.evolution.offline.cues:words_beside": lambda text: cues.words_beside(text, "change"),
    "core.evolution.offline.cues:laughs": cues.laughs,
    "core.evolution.offline.cues:sense_of": cues.sense_of,
    "core.evolution.offline.cues:times_in": cues.times_in,
    "core.evolution.offline.reading:keys_of": reading.keys_of,
    "core.evolution.offline.reading:own_text": lambda text: reading.own_text(_message(text)),
    "core.evolution.offline.reading:visible_line": reading.visible_line,
    "core.evolution.wording:Names.within": _NAMES.within,
    "core.evolution.wording:negations": wording.negations,
    "core.evolution.wording:says_change": wording.says_change,
    "core.evolution.wording:refuses_change": wording.refuses_change,
    "core.evolution.wording:adverse": wording.adverse,
    "core.evolution.wording:forbids": wording.forbids,
    "core.evolution.wording:new_names": lambda text: list(wording.new_names(text)),
    "core.evolution.guards:is_order": evolution_guards.is_order,
    "core.evolution.wording:details": lambda text: wording.details(text, _NAMES),
    "core.evolution.wording:signals_change": wording.signals_change,
    "core.evolution.wording:without_details": lambda text: wording.without_details(text, _NAMES),
    "core.evolution.wording:ParsedMaterial.of": (
        lambda text: wording.ParsedMaterial({"m1": f"Anna: {text}"}, [text]).of(text).words
    ),
    "integrations.payloads:give_back": lambda text: give_back({"raw": {"text": None}, "text_at": ["text"]}, text),
    "core.intake:check_query": lambda text: intake.check_query(f"{text[: intake.MAX_QUERY_CHARS - 1]}.", limit=1),
    "core.intake:content_hash": lambda text: intake.content_hash(_message(text)),
    "core.search.query:spell": query.spell,
    "core.search.query:indexed_words": lambda text: query.indexed_words(_message(text)),
    "core.search.query:passage": lambda text: query.passage(_message(text)),
    "core.linking.reading:read": lambda text: link_reading.read(_message(text), MessageFeatures(addressed=("anna",))),
    "core.linking.reading:without_calls": lambda text: link_reading.without_calls(text, {"anna", "bot"}),
    "core.memory.scoring:read_question": lambda text: memory_asking.read_question(text, of_group=True),
    "core.memory.extraction:fallback": extraction.fallback,
    "core.memory.reading:without_times": memory_reading.without_times,
    "core.memory.extraction:shortened": lambda text: extraction.shortened(text, 100),
    "core.memory.extraction:kept": lambda text: extraction.kept(f"enough of it {text}", instructions="Write a summary"),
    "core.memory.writing:is_longer": lambda text: writing.is_longer(text, 4_000),
    "core.memory.writing:normal": writing.normal,
    "core.memory.reading:as_conversation": _conversation,
    "core.memory.reading:is_injected": lambda text: memory_reading.is_injected(_message(text, Role.SYSTEM)),
    "core.memory.reading:own_words": lambda text: memory_reading.own_words(_message(text)),
    "core.memory.scoring:is_dense_script": scoring.is_dense_script,
    "core.memory.scoring:asked_for": scoring.asked_for,
    "core.memory.scoring:held": lambda text: scoring.held([text]),
    "core.memory.log:words_diff": lambda text: log.words_diff(text, f"{text[1:]}!"),
    "core.mentions:with_names": lambda text: mentions.with_names(text, {"a": "Anna", "1": "Ben"}, ("a", "1")),
    "core.mentions:ids_named": lambda text: mentions.ids_named(text, ("a", "1")),
    "core.mentions:find_mentions": lambda text: mentions.find_mentions(text, _PEOPLE.names),
    "core.mentions:naming_of": lambda text: mentions.naming_of([text]),
    "core.json_values:storable": json_values.storable,
    "core.privacy:without_copies": lambda text: privacy.without_copies(text, [f"{text[:99]}Anna", "> the vault"]),
    "core.privacy:Taken.redact": lambda text: _TAKEN.redact(text, _TRACES),
    "core.privacy:Traces.calls": lambda text: list(_TRACES.calls(text)),
    "core.privacy:Traces.has_id": _TRACES.has_id,
    "core.privacy:Traces.ids": lambda text: list(_TRACES.ids(text)),
    "core.privacy:Traces.in_label": _TRACES.in_label,
    "core.privacy:Traces.mentioned": _TRACES.mentioned,
    "core.privacy:Traces.named_in": _TRACES.named_in,
    "core.privacy:Traces.names_them": _TRACES.names_them,
    "core.privacy:Traces.quotes": lambda text: _TRACES.quotes(f"{text} “{_VAULT}” {text}"),
    "core.privacy:Traces.redact": lambda text: _TRACES.redact(text, and_names=True),
    "core.privacy:Traces.redact_others": lambda text: _TRACES.redact_others(f"{text} Anna Lindt {text}"),
    "core.privacy:Traces.redact_name": _TRACES.redact_name,
    "core.privacy:Traces.repeated": _TRACES.repeated,
    "core.privacy:Traces.repeats": lambda text: list(_TRACES.repeats(text)),
    "core.privacy:Traces.tells": lambda text: _TRACES.tells(f"{text} Anna Lindt {text}"),
    "core.privacy:cut_out": lambda text: privacy.cut_out(text, [(0, 1), (len(text) // 2, len(text))]),
    "core.privacy:count_marks": privacy.count_marks,
    "core.privacy:has_mark": privacy.has_mark,
    "core.privacy:mark": privacy.mark,
    "core.privacy:passages": privacy.passages,
    "core.privacy:weight": privacy.weight,
    "core.search.query:read_query": lambda text: query.read_query(text, facts=_FACTS),
    "core.mentions:named_author": mentions.named_author,
    "core.mentions:split_quote": mentions.split_quote,
    "core.mentions:split_quotes": lambda text: (mentions.split_quotes(text), mentions.split_quotes(f"> a\n{text}")),
    "core.prompt:is_label": prompt.is_label,
    "core.prompt:neutral": lambda text: prompt.neutral(f"{text}<memory\n{text}System:"),
    "core.recall.recollection:line_of": lambda text: recollection.line_of(text, text),
    "core.recall.ranking:topic_of": lambda text: ranking.topic_of([ConversationMessage("user", text)], 3),
    "core.recall.ranking:Vocabulary.count": lambda text: ranking.Vocabulary().count(ranking.concepts(text)),
    "core.recall.ranking:amount": ranking.amount,
    "core.attachments:kind_of": attachments.kind_of,
    "core.attachments:attachment": lambda text: attachments.attachment(_holding(text)),
    "core.attachments:caption_of": lambda text: attachments.caption_of(_holding(text)),
    "core.attachments:counted_text": lambda text: attachments.counted_text(_holding(text)),
    "core.attachments:descriptions_of": lambda text: attachments.descriptions_of(_holding(text)),
    "core.attachments:with_attachments": lambda text: attachments.with_attachments(_holding(text), "en"),
    "core.transcript:Speakers.line": _speaker,
    "core.transcript:Speakers.with_names": lambda text: transcript.Speakers({"a": "Anna"}, agents=()).with_names(
        _message(text), text
    ),
    "core.transcript:spoken_text": lambda text: transcript.spoken_text(_message(text)),
    "core.sessions.window:signed": lambda text: turns.signed(text, key=b"k", tenant="t", conversation_id="c"),
    "core.sessions.window:verified": lambda text: turns.verified(text, key=b"k", tenant="t", conversation_id="c"),
    "core.sessions.window:summary_line": lambda text: turns.summary_line(text, "en"),
    "core.summary:accepted": lambda text: summary_answers.accepted(
        f"enough of it {text}", max_tokens=999, count=_count
    ),
    "core.summary:without_label": summary_answers.without_label,
    "core.summary:refuses": summary_answers.refuses,
    "core.summary:echoes": lambda text: summary_answers.echoes(text, text),
    "core.digest.points:speaks_of_decision": points.speaks_of_decision,
    "core.digest.points:says_little": points.says_little,
    "core.digest.written:read_written": lambda text: written.read_written(
        f"{text}\n{json.dumps({'text': text, 'evidence': ['c1']})}",
        written.PromptWindow(f"t1\nc1 [x] Anna: {text}", {"t1": 1}, {"c1": ("m1", "t1")}),
    ),
    "core.digest.written:read_titles": lambda text: written.read_titles(
        f"{text}\n{json.dumps({'talk': 't1', 'title': text})}",
        written.PromptWindow(f"t1\nc1 [x] Anna: {text}", {"t1": 1}, {"c1": ("m1", "t1")}),
    ),
    "core.evolution.doubts:Doubts.of_account": lambda text: Doubts(
        f"c1 [x] Anna: {text}", wording.ParsedMaterial({"c1": f"Anna: {text}"}, [text]), {}
    ).of_account(text, ["c1"]),
    "core.digest.talks:shortened": lambda text: digest_wording.shortened(text, len(text) // 9 + 1),
    "core.evaluation:Question.answered_by": lambda text: Question(question="?", words=(text[:9],)).answered_by(
        "m1", text
    ),
    "core.summary:shortened": lambda text: summary_answers.shortened(text, len(text) // 9, _count),
    "core.summary:completed": lambda text: summary_answers.completed(
        "enough of it", text, [sentences.SpeakerText("Anna", text)], max_tokens=200, count=_count
    ),
    "core.summary.corrections:corrected": lambda text: corrections.corrected([text, f"no, {text}"], [text, "Ann"]),
    "core.safety:importance": safety.importance,
    "core.values:clause_around": lambda text: values.clause_around(text, (0, 1)),
    "core.values:cut_out": lambda text: values.cut_out(text, [(0, 1)]),
    "core.values:values_in": values.values_in,
    "core.values:without_values": lambda text: values.without_values(text, values.values_in(text)),
    "core.values:words_of": values.words_of,
    "core.summary:says_nothing": summary_answers.says_nothing,
    "core.safety:Coverage.add": lambda text: safety.Coverage([text], [text]).add(text),
    "core.summary:sentence_parts": summary.sentence_parts,
    "core.summary:extract": lambda text: summary.extract(
        text, [sentences.SpeakerText("Anna", text)], max_tokens=200, count=_count
    ),
    "core.summary.sentences:closed": sentences.closed,
    "core.summary.sentences:readings": sentences.readings,
    "core.summary.sentences:worth": sentences.worth,
    "core.summary:cut": lambda text: summary.cut(text, len(text) // 9, _count),
    "core.summary:cut_at_sentence": lambda text: summary.cut_at_sentence(text, len(text) // 9, _count),
    "core.summary.sentences:is_fragment": lambda text: summary_quotes.is_fragment(text[1:], text),
    "core.summary.sentences:unsplit": summary_quotes.unsplit,
    "core.summary.sentences:label_of": sentences.label_of,
    "core.summary.sentences:prose": sentences.prose,
    "core.summary.sentences:units": lambda text: sentences.units(text, [sentences.SpeakerText("Anna", text)]),
    "core.safety:forbids": safety.forbids,
    "core.safety:is_decision": safety.is_decision,
    "core.safety:is_declared": safety.is_declared,
    "core.safety:is_grave": safety.is_grave,
    "core.safety:is_medication": safety.is_medication,
    "core.safety:is_safety": safety.is_safety,
    "core.safety:is_stop": safety.is_stop,
    "core.lexicon:spoken": lexicon.spoken,
    "core.subjects:subjects": subjects.subjects,
    "core.recall.ranking:concepts": ranking.concepts,
    "core.folding:clusters": folding.clusters,
    "core.folding:unaccented": lambda text: folding.unaccented(core_text.fold(text)),
    "core.folding:whole_words": lambda text: folding.whole_words(core_text.fold(text)),
    "core.folding:without_prefix": folding.without_prefix,
    "core.text:in_other_script": core_text.in_other_script,
    "core.text:is_chinese": core_text.is_chinese,
    "core.text:is_written": core_text.is_written,
    "core.text:pieces": core_text.pieces,
    "core.text:pieces_in": core_text.pieces_in,
    "core.text:unframed": core_text.unframed,
    "core.text:without_grammar": lambda text: core_text.without_grammar(core_text.terms(text)),
    "core.text:written": core_text.written,
    "core.text:roots": search_terms.roots,
    "core.text:terms": search_terms.terms,
    "core.text:alike": lambda text: core_text.alike(text, [text[1:], text[:-1], *text.split()]),
    "core.text:asks": core_text.asks,
    "core.text:fitting": lambda text: core_text.fitting(text, len(text) - 1),
    "core.text:fold": core_text.fold,
    "core.text:graphemes": core_text.graphemes,
    "core.text:greets": core_text.greets,
    "core.text:has_any": lambda text: core_text.has_any(text, ["thanks", "谢谢"]),
    "core.text:head": core_text.head,
    "core.text:is_question": core_text.is_question,
    "core.text:keywords": core_text.keywords,
    "core.text:language": core_text.language,
    "core.text:segment": lambda text: core_text.segment(json_values.storable(text)),
    "core.text:sentences": core_text.sentences,
    "core.text:singular": core_text.singular,
    "core.text:stem": core_text.stem,
    "core.text:stemmed": core_text.stemmed,
    "core.text:stemmed_words": core_text.stemmed_words,
    "core.text:requests": core_text.requests,
    "core.text:thanks": core_text.thanks,
    "core.text:truncate": lambda text: core_text.truncate(text, len(text) - 1),
    "core.text:words": core_text.words,
    "core.dates.chinese:start": lambda text: chinese.start(text, 0),
    "core.dates.languages:is_japanese": languages.is_japanese,
    "core.dates.languages:languages_in": languages.languages_in,
    "core.dates.languages:names_date": languages.names_date,
    "core.dates.languages:names_time": languages.names_time,
    "core.dates.languages:times_ahead": lambda text: list(languages.times_ahead(text, _NOW.date())),
    "core.dates.spans:time_spans": lambda text: time_spans(text, now=_NOW),
    **{f"importers.{name}:read": reader for name, reader in IMPORTERS.items()},
    "importers.irc:is_log_line": irc.is_log_line,
    "importers.wechat:table_in_line": wechat.table_in_line,
    "importers.export_files:excerpt": export_files.excerpt,
    "importers.json_stream:parse_object": json_stream.parse_object,
    "importers.whatsapp_stamps:read_stamp": whatsapp_stamps.read_stamp,
    "importers.whatsapp_content:angle_at_end": whatsapp_content.angle_at_end,
    "importers.whatsapp_content:from_right_to_left": whatsapp_content.from_right_to_left,
    "importers.whatsapp_content:is_of_program": lambda text: whatsapp_content.is_of_program(text, "Ann"),
    "importers.whatsapp_content:plain": whatsapp_content.plain,
    "importers.whatsapp_content:read_content": lambda text: [
        whatsapp_content.read_content(f"{mark}{text}", whatsapp_content.Setting(bracketed=True, sender="Ann"))
        for mark in ("", whatsapp_content.MARK)
    ],
    "importers.whatsapp_words:letters": whatsapp_words.letters,
    "importers.whatsapp_words:says": lambda text: whatsapp_words.says(text, "deleted"),
    "importers.chat_lines:content_of": lambda text: chat_lines.content_of(text, bare=True),
    "importers.chat_lines:kind_of_word": chat_lines.kind_of_word,
    "importers.written_dates:read_day": written_dates.read_day,
    "importers.written_dates:read_moment": written_dates.read_moment,
    "surfaces.console.frame:clipped": lambda text: frame.clipped(text, len(text) - 1),
    "surfaces.console.frame:visible": frame.visible,
    "surfaces.cli.show:inert": show.inert,
    "surfaces.cli.show:inert_piece": show.inert_piece,
    "surfaces.cli.show:reason": lambda text: show.reason(text, wide=False),
    "surfaces.cli.show:padded": lambda text: show.padded(text, 20),
    "surfaces.excerpts:excerpt": lambda text: excerpts.excerpt(text, excerpts.matches(text, "tea 茶叶"), 200),
    "surfaces.excerpts:matches": lambda text: excerpts.matches(text, text[:400]),
    "surfaces.mcp.answers:sendable": fitting.sendable,
    "surfaces.mcp.answers:shortened": lambda text: fitting.shortened(text, len(text)),
}
"""By module and name, without the package's."""

SHORT = frozenset(
    {
        "core.digest.talks:WordRarity.rarity",
        "core.evolution.prompt:chosen",
        "core.evolution.guards:checked_answer",
        "core.integrity:Findings.note",
        "core.memory.versions:InForce.all_saying",
        "core.memory.versions:InForce.saying",
        "core.privacy:is_mark",
        "core.recall.ranking:Vocabulary.place",
        "core.recall.ranking:FactWords.reach",
        "core.sessions.window:from_text",
        "core.sessions.window:as_chat",
        "core.sessions.window:as_text",
        "core.sessions.window:show",
        "core.dates.chinese:numeral",
        "core.dates.english:weekday_number",
        "importers.chat_lines:Grammar.content",
        "importers.chat_lines:Grammar.head",
        "importers.shapes:Draft.add",
        "importers.shapes:Passage.take",
        "importers.shapes:spoken",
    }
)
"""They look a word up, read one word of a fixed list, parse JSON, or do nothing with a text but hand it to a reader."""

_TEXTS = frozenset(
    (
        *("text", "folded", "run", "word", "sentence", "statement", "answer", "quoted", "said", "whole", "old", "one"),
        *("summary", "previous", "line", "query"),
    )
)


_SURFACES = ("roomlore.surfaces.cli.show", "roomlore.surfaces.excerpts")


def text_functions() -> Iterator[str]:
    """The public functions and methods in which a parameter named like a text is a string."""
    packages = [pkgutil.walk_packages(one.__path__, f"{one.__name__}.") for one in (roomlore, roomlore_importers)]
    for found in chain(*packages):
        read = found.name.startswith(("roomlore.core.", "roomlore_importers.")) or found.name in _SURFACES
        if not read:
            continue
        module = importlib.import_module(found.name)
        plain = found.name.removeprefix("roomlore").lstrip("._")
        for name, value in vars(module).items():
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__:
                yield from (f"{plain}:{one}" for one in _reading(name, value))


def _reading(name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        for inner, method in vars(value).items():
            if not inner.startswith("_"):
                yield from _reading(f"{name}.{inner}", getattr(method, "__func__", method))
    elif inspect.isfunction(value):
        parameters = inspect.signature(value).parameters.values()
        if any(one.name in _TEXTS and one.annotation is str for one in parameters):
            yield name
