"""Questions about what is remembered."""

import re
from dataclasses import dataclass

from roomlore.core.terms import terms

_MOST_TERMS = 128
_EMBEDDED_CHARS = 1_500
_ASKING = re.compile(
    "请问|为什么|為什麼|什么样|什麼樣|什么|什麼|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣|哪里|哪裡|哪儿|哪兒|哪个|哪個|哪些|哪天|哪"
    "|谁|誰|多少|几点|幾點|几|幾|如何|是否|有没有|有沒有|吗|嗎|呢"
)
_GROUP = re.compile(r"(?:我们|我們|咱们|这个|這個|本)?(?<!集)群[组組](?![主名员員])|(?:这个|這個|本)群(?=的)")
_THE_GROUP = re.compile(
    r"\b(?:the|this|our) group(?:(?P<of>['’]s)|(?!['’]))\b(?! (?:name|chat|owner|admin|rule))", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Question:
    """`terms`: the distinct terms of what it asks for, without those that only ask. `embed`: the text whose vector
    stands for it."""

    text: str
    terms: tuple[str, ...]
    embed: str


def read_question(text: str, *, of_group: bool) -> Question:
    """Reads a question. `of_group`: the memories are a group's. There "the group" tells nothing from anything, and
    draws a vector to whatever says "group"; what is asked of a group is asked of its members."""
    meant = _of_members(text) if of_group else text
    return Question(
        text=text,
        terms=tuple(dict.fromkeys(terms(_ASKING.sub(" ", meant))))[:_MOST_TERMS],
        embed=meant.strip()[:_EMBEDDED_CHARS],
    )


def _of_members(text: str) -> str:
    text = _GROUP.sub("成员", text)
    return _THE_GROUP.sub(lambda found: "the members'" if found["of"] else "the members", text)
