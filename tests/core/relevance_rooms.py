"""Entries of a small room, as the tests of relevance, contexts and tuning need them."""

from datetime import UTC, datetime, timedelta

from roomlore.core.models import Entry, Link, LinkKind, MessageFeatures, ReplyInfo, StoredMessage

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def entry(
    arrival,
    sender="ann",
    *,
    minute=None,
    name="",
    reply_to=None,
    root=None,
    mentions=(),
    addressed=(),
    keywords=(),
    quotes=None,
    link=None,
):
    """A message with id `m<arrival>`, sent `minute` minutes after BEGIN (by default as many as its arrival)."""
    message = StoredMessage(
        id=f"m{arrival}",
        room_id="tea",
        sender_id=sender,
        sender_name=name,
        text=f"text {arrival}",
        sent_at=BEGIN + timedelta(minutes=arrival if minute is None else minute),
        reply_to=reply_to and f"m{reply_to}",
        root_id=root and f"m{root}",
        arrival=arrival,
    )
    features = MessageFeatures(
        mentions=tuple(mentions),
        addressed=tuple(addressed),
        keywords=tuple(keywords),
        reply=ReplyInfo(kind="quote", sender_id=quotes) if quotes else None,
    )
    return Entry(message=message, features=features, link=link or Link(kind=LinkKind.NEW, thread=arrival))
