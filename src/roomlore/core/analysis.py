"""Derive the features of a message: reply target, mentions, message type and keywords."""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from roomlore.core import lexicon
from roomlore.core.attachments import caption_of
from roomlore.core.mentions import TAG, find_mentions, split_quote
from roomlore.core.models import Entry, Message, MessageFeatures, MessageType, ReplyInfo, Role, StoredMessage
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import from_record, with_own_names
from roomlore.core.text import HAN, asks, fold, greets, has_any, head, keywords, requests, thanks

_ID, _NAME, _NICK, _GIVEN = range(4)
# What a nick adds after a bar or in brackets; a bar that begins it is a part of the name.
_AWAY, _CLAN = lazy_pattern(r"(?<=\w)\|"), lazy_pattern(r"(?<=\w)\[")
# Three Chinese characters in a row, of which the last two are a given name.
_HAN_NAME = lazy_pattern(f"[{HAN}]{{3}}")
# A notice that a platform writes: its kind in brackets or before a colon, at the beginning only.
_NOTICE = lazy_pattern(
    rf"\s*(?:[\[【(](?:{lexicon.alternatives('notice_kind')})\w*[\])】]|(?:{lexicon.alternatives('notice_label')})\s*:)"
)
_CHANGES = lexicon.words("room_change_hint")
# A notice that somebody joined or left, or renamed the room, after at most one name.
_CHANGE = lazy_pattern(rf"\s*[^\n]{{1,64}}?\s?(?:{lexicon.alternatives('room_change')})")
# Possessive, longest first: no text causes backtracking.
_SMALL_TALK = lazy_pattern(
    rf"(?:[:;x=]-?[dpo3]\b|xd\b|\+1|666+|233+|[\W_]"
    rf"|{lexicon.forms('small_talk', 'en')}\b|{lexicon.forms('small_talk', 'zh')})*+"
)
_COURTESY = 60
_SILENT = (Role.SYSTEM, Role.TOOL)
_EVERYBODY = frozenset({"all", "@all", "_all", "everyone", "here", "channel", "@everyone", "@here"})


class Participants:
    """The people who have spoken in a room so far, with the folded names they are found under.

    The result depends only on the mapping from sender id to last known name, in order of first speaking. If two people
    claim a name, an id wins over a name, a name over a nick without its ornaments (`anna_` and `anna|away` are found as
    `anna`), the nick over a given name, and then whoever spoke first. A given name that two people share finds neither.
    """

    __slots__ = ("_claims", "_names", "_order", "_owners")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._order: dict[str, int] = {}
        self._claims: dict[str, list[tuple[int, int, str]]] = {}
        self._owners: dict[str, str] = {}

    @classmethod
    def of(cls, names: Mapping[str, str]) -> "Participants":
        """Build from sender ids and their last known names ('' if none), in order of first speaking."""
        participants = cls()
        for sender_id, name in names.items():
            participants.see(sender_id, name)
        return participants

    def see(self, sender_id: str, sender_name: str) -> None:
        """Record that somebody spoke. An empty name keeps the known one; another name replaces it."""
        known = self._names.get(sender_id)
        if known is None:
            self._order[sender_id] = len(self._order)
            self._claim(sender_id, fold(sender_id).strip(), _ID)
        if known is None or (sender_name and sender_name != known):
            self._rename(sender_id, known, sender_name)

    @property
    def names(self) -> Mapping[str, str]:
        """Folded name or id to sender id; grows as people are seen."""
        return self._owners

    def name_of(self, sender_id: str) -> str:
        """Return the last known name, '' if none."""
        return self._names.get(sender_id, "")

    def __contains__(self, sender_id: object) -> bool:
        return sender_id in self._names

    def __len__(self) -> int:
        return len(self._names)

    def _rename(self, sender_id: str, old: str | None, new: str) -> None:
        for name, rank in _spellings(sender_id, old):
            self._remove_claim(sender_id, name, rank)
        for name, rank in _spellings(sender_id, new):
            self._claim(sender_id, name, rank)
        self._names[sender_id] = new

    def _claim(self, sender_id: str, name: str, rank: int) -> None:
        if not name:
            return
        claims = self._claims.setdefault(name, [])
        insort(claims, (rank, self._order[sender_id], sender_id))
        self._update_owner(name)

    def _remove_claim(self, sender_id: str, name: str, rank: int) -> None:
        if not name:
            return
        self._claims[name].remove((rank, self._order[sender_id], sender_id))
        self._update_owner(name)

    def _update_owner(self, name: str) -> None:
        claims = self._claims[name]
        if claims and (claims[0][0] < _GIVEN or len(claims) == 1):
            self._owners[name] = claims[0][2]
        else:
            self._owners.pop(name, None)


def _spellings(sender_id: str, name: str | None) -> list[tuple[str, int]]:
    """Return the folded names of a sender besides the id, each with its rank; none for a sender not seen yet."""
    if name is None:
        return []
    whole = fold(name).strip()
    nicks = dict.fromkeys(_bare_nick(spelling) for spelling in (fold(sender_id).strip(), whole))
    return [(whole, _NAME), *((nick, _NICK) for nick in nicks), (_given_name(whole), _GIVEN)]


def _bare_nick(nick: str) -> str:
    bare = nick[: min(_decorated(nick))].lstrip("_[{^`")
    bare = bare[:-1] if bare.endswith(("]", "}")) else bare
    return bare if len(bare) > 2 and bare != nick else ""


def _decorated(nick: str) -> Iterator[int]:
    """Yield the index of each ornament of a nick (`anna___`, `anna|away`, `anna[work]`), and last its end."""
    tail = len(nick.rstrip("_`^-"))
    if tail and nick[tail - 1].isalnum():
        yield tail
    elif "_" in nick[tail:]:
        yield nick.index("_", tail) + 1
    line = nick.rfind("\n") + 1
    signs = [_AWAY.search(nick, line), _CLAN.search(nick, line, len(nick) - 1) if nick.endswith("]") else None]
    yield from (sign.start() for sign in signs if sign)
    yield len(nick)


def _given_name(name: str) -> str:
    """Return the given name, `anna` of `anna lindt` or `雨桐` of `周雨桐`; '' if the name has none."""
    if _HAN_NAME.fullmatch(name):
        return name[1:]
    first, space, _ = name.partition(" ")
    return first if space and len(first) > 2 and first.isalpha() else ""


def read_anew(entry: Entry, message: StoredMessage, people: Mapping[str, str], tokens: int) -> Entry:
    """Return the entry with its message as it was changed, analysed again; its link stays. `tokens`: of what counts of
    the message, `counted_text`."""
    features = analyse(message, Participants.of(people), entry.features.partners)
    return replace(entry, message=replace(message, tokens=tokens), features=features)


def analyse(message: Message, participants: Participants, partners: tuple[str, ...] = ()) -> MessageFeatures:
    """Return the features of a message, read with the people who spoke before it. `partners` are copied unchanged.

    Quoted lines count for the keywords only. If the message has no text, its `metadata.caption` is read. The sender's
    own name is not a mention.
    """
    text = message.text if message.text.strip() else caption_of(message)
    quotation, body = split_quote(text)
    quoted = quotation.author if quotation else None
    named = find_mentions(body, participants.names)
    platform = [person for person in message.mentions if person.casefold() not in _EVERYBODY]
    others = _without(message.sender_id, (*platform, *named.people))
    addressed = _without(message.sender_id, named.addressed)
    everyone = named.everyone or len(platform) < len(message.mentions)
    reply = _reply(message, addressed, quoted, participants)
    folded = head(body)
    return MessageFeatures(
        message_type=_message_type(message, folded, everyone, reply),
        mentions=others,
        addressed=addressed,
        mentions_all=everyone,
        keywords=_topics(message, others, participants),
        reply=reply,
        partners=partners,
    )


class MessageAnalyzer:
    """Read messages one by one. `people`: names by sender id, of those who spoke before, in order of first speaking."""

    def __init__(self, people: Mapping[str, str] | None = None) -> None:
        self._people = Participants.of(people or {})

    def analyze_message(self, message: Message | Mapping[str, Any]) -> MessageFeatures:
        """Return the features of a message, or of its JSON form, and remember its sender for the next one.

        Raises `InvalidInput` if the JSON form is invalid.
        """
        read = message if isinstance(message, Message) else from_record(with_own_names(message)).message
        features = analyse(read, self._people)
        self._people.see(read.sender_id, read.sender_name)
        return features


def _without(sender_id: str, people: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([person for person in people if person and person != sender_id]))


def _topics(message: Message, named: tuple[str, ...], participants: Participants) -> tuple[str, ...]:
    """Return the keywords of text and caption without the names of people who are mentioned."""
    text, names = TAG.sub(" ", message.text) if "<" in message.text else message.text, participants.names
    caption = caption_of(message)
    terms = keywords(f"{text}\n{caption}" if caption else text)
    if not named:
        return terms
    return tuple(keyword for keyword in terms if keyword not in named and names.get(keyword) not in named)


def _reply(
    message: Message, addressed: tuple[str, ...], quoted: str | None, participants: Participants
) -> ReplyInfo | None:
    """Return the strongest of platform reply, platform thread, quotation, and leading @ or name."""
    if message.reply_to and message.reply_to != message.id:
        return ReplyInfo(kind="reply", message_id=message.reply_to)
    if message.root_id and message.root_id != message.id:
        return ReplyInfo(kind="thread", message_id=message.root_id)
    quote = message.metadata.get("quote")
    if quote or quoted is not None:
        return _quote_reply(quote, quoted, participants)
    return ReplyInfo(kind="mention", sender_id=addressed[0]) if addressed else None


def with_answered(entry: Entry, answered: Sequence[Entry]) -> Entry:
    """Return the entry; a platform reply to the only message of `answered` names its sender. This is not stored: the
    message may arrive later, and be deleted."""
    reply = entry.features.reply
    if not answered or reply is None or reply.message_id != answered[0].message.id or reply.kind != "reply":
        return entry
    named = replace(reply, sender_id=answered[0].message.sender_id)
    return replace(entry, features=replace(entry.features, reply=named))


def _quote_reply(quote: Any, quoted: str | None, participants: Participants) -> ReplyInfo:
    """Return the reply that `metadata.quote` states; it is a text or an object with any of `message_id`, `id`,
    `sender_id`."""
    given = quote if isinstance(quote, Mapping) else {}
    message_id = given.get("message_id") or given.get("id")
    sender_id = given.get("sender_id") or participants.names.get(fold(quoted or "").strip())
    return ReplyInfo(
        kind="quote",
        message_id=message_id if isinstance(message_id, str) else None,
        sender_id=sender_id if isinstance(sender_id, str) else None,
    )


def _message_type(message: Message, folded: str, everyone: bool, reply: ReplyInfo | None) -> MessageType:
    """Classify the message: first notices, then questions, then courtesies. A message that answers somebody is an
    answer; all else is discussion."""
    if message.role in _SILENT or _is_notice(folded):
        return MessageType.NOTIFICATION
    if asks(folded):
        return MessageType.QUESTION
    if everyone and not greets(folded):
        return MessageType.NOTIFICATION
    if _is_casual(folded):
        return MessageType.CASUAL
    if reply or message.role is Role.ASSISTANT:
        return MessageType.ANSWER
    return MessageType.DISCUSSION


def _is_notice(folded: str) -> bool:
    """Return True if the text is a platform notice. Two leading white-space characters are enough before `joined the
    room`."""
    blank = len(folded) - len(folded.lstrip())
    start = max(0, blank - 2)
    if _NOTICE.match(folded, start):
        return True
    return has_any(folded, _CHANGES) and _CHANGE.match(folded, start) is not None


def _is_casual(folded: str) -> bool:
    """Return True for greetings, thanks and other short courtesies, laughter, emoji and messages without words.

    'Thanks, I also need the key' asks for something.
    """
    if len(folded) > _COURTESY:
        return False
    courteous = greets(folded) or thanks(folded)
    return not requests(folded) if courteous else _SMALL_TALK.fullmatch(folded) is not None
