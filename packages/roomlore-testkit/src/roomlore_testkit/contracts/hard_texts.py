"""Texts that a store may find hard to keep."""

HARD_TEXTS = [
    "a\x00b",
    "\x00",
    "\x1a",
    "\x1a0",
    "\x1a\x1a0\x00\x1au0041",
    "\\x00 \\u0000 \\",
    "\ud800 lone \udfff",
    "'; DROP TABLE messages; --",
    '" OR 1=1 %s %(a)s :a ?',
    "e\u0301 👩‍👩‍👧 部署 \u202e",
    "\r\n\t\x7f\ufeff",
    "null",
]
