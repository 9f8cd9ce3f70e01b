"""A room whose people want to break the page it is shown on: texts, names, ids and metadata."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from roomlore import Message

BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
TEXTS = (
    "<script>window.taken = 1</script>",
    "</script><script>window.taken = 1</script>",
    "<img src=x onerror='window.taken = 1'>",
    "<svg onload=window.taken=1><style>*{display:none}</style>",
    "<iframe srcdoc='<script>parent.taken=1</script>'></iframe><base href=//elsewhere.example/>",
    "</p></article></li></ol></main></body><h1>gone</h1>",
    "javascript:window.taken=1 [click](javascript:window.taken=1) <a href=javascript:taken=1>x</a>",
    "{{ 7 * 7 }} {% include '/etc/passwd' %} ${window.taken = 1} <%= 1 %>",
    "<div hx-get='https://elsewhere.example/' hx-trigger=load></div><meta http-equiv=refresh content=0>",
    "# Heading **bold** ![x](https://elsewhere.example/x.png)\n```\ncode\n```\n| a | b |",
    "'); DROP TABLE messages; --",
    "safe \u202egpj.exe \u2066inner\u2069 \u200b\u200b\u200b\ufeff\u00ad hidden",
    "Z" + "\u0351\u0352\u0353" * 3_000 + "algo 茶" + "\u0301" * 4_000,
    "w" * 100_000,
    "长" * 100_000,
    "👩\u200d🚀👨\u200d👩\u200d👧\u200d👦🏳\ufe0f\u200d🌈" * 300,
    "\x01\x02\x1b[31m\x07\x9b\u2028\u2029",
    "مرحبا بالعالم שלום עולם",
    "\n" * 2_000,
    " \u3000\t ",
    "\u1160\u3164\uffa0\u2800" * 500,
    "&lt;b&gt; &#x202e; &amp;amp; \"'`><",
    "长words no1space<b>" * 1_000,
)
"""Each of them was once enough to break some page somewhere."""

NAMES = (
    "<b onmouseover=window.taken=1>mallory</b>",
    "\u202eyrollam",
    "n" * 500,
    "名" * 500,
    "\"><script>window.taken=1</script>",
    "M\u0351\u0352\u0353\u0354\u0355\u0356\u0357",
    "{{ config }}",
    "&lt;anna&gt;",
)  # fmt: skip
ROOM = '"><script>window.taken=1</script>\u202e/..?a=b&c#茶'


def hostile(count: int, room: str = ROOM) -> Iterator[Message]:
    """So many messages of eight people; a third answer the one five before. The longest texts come twice, then cut, so
    that storing many does not take long."""
    for number in range(count):
        yield Message(
            id=_id(number),
            room_id=room,
            sender_id=f"<i>{number % 8}\u202e'\"",
            sender_name=NAMES[number % len(NAMES)],
            text=TEXTS[number % len(TEXTS)][: 100_000 if number < 2 * len(TEXTS) else 3_000],
            sent_at=BEGIN + timedelta(seconds=number),
            reply_to=_id(number - 5) if number % 3 == 0 and number >= 5 else None,
            metadata={"<script>window.taken=1</script>": ["</script>", "\u202e", "{{ 7 * 7 }}"], "caption": TEXTS[0]},
        )


def _id(number: int) -> str:
    return f'{number}"><img src=x onerror=window.taken=1>\u202e?&#/../{{{{ 7 * 7 }}}}'
