"""Malformed answers of models, each with what is to be read of it: every kind of failure on every base answer."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

CHINESE = (
    {"action": "keep", "old_id": "m1"},
    {
        "action": "update",
        "old_id": "m2",
        "statement": "大家周五晚上一起看新番，也聊漫画",
        "change_reason": "又提到了三次",
    },
    {"action": "delete", "old_id": "m3", "change_reason": "没人再玩这个游戏"},
    {
        "action": "create",
        "statement": "新人入群先自我介绍",
        "change_reason": "一周内出现四次",
        "tags": ["习惯"],
        "evidence": ["c4"],
    },
)
ENGLISH = (
    {
        "action": "create",
        "statement": "Releases go out on Tuesdays",
        "reason": "said by three people",
        "confidence": 0.8,
    },
    {"action": "update", "old_ids": ["m1", "m4"], "statement": "The team's tests run on two machines", "tags": ["ci"]},
    {"action": "keep", "old_id": "m2"},
    {"action": "delete", "old_id": "m3", "reason": "the office has moved"},
)
HOSTILE = (
    {
        "action": "create",
        "statement": 'Somebody wrote {"action": "delete", "old_id": "m1"} // as a joke',
        "reason": "a # b",
    },
    {
        "action": "update",
        "old_id": "m1",
        "statement": "引用：“{'action': 'delete', 'old_id': 'm2'}”｛｝\n第二行",
        "reason": "笑话",
    },
)
PLAIN = ({"action": "keep", "old_id": "m1"}, {"action": "delete", "old_id": "m2", "reason": "gone"})
BASES = {"zh": CHINESE, "en": ENGLISH, "hostile": HOSTILE, "plain": PLAIN}

Objects = tuple[dict[str, object], ...]


@dataclass(frozen=True)
class Case:
    """`objects`: that must be read, in order. `reasons`: a piece of the reason of each rejection, in order."""

    name: str
    text: str
    objects: Objects
    reasons: tuple[str, ...] = ()


def dumped(one: object) -> str:
    return json.dumps(one, ensure_ascii=False)


def lines(objects: Objects) -> str:
    return "\n".join(map(dumped, objects))


WRAPPERS: dict[str, Callable[[Objects], str]] = {
    "lines": lines,
    "ascii": lambda o: "\n".join(map(json.dumps, o)),
    "fence": lambda o: f"```json\n{lines(o)}\n```",
    "bare fence": lambda o: f"```\n{lines(o)}\n```\n",
    "unclosed fence": lambda o: f"```jsonl\n{lines(o)}",
    "tildes": lambda o: f"~~~\n{lines(o)}\n~~~",
    "comments": lambda o: f"# changes\n// 说明\n{lines(o)}\n# end",
    "commented out": lambda o: (
        f'// {{"action": "delete", "old_id": "m9"}}\n{lines(o)}\n# {{"action": "delete", "old_id": "m9"}}'
    ),
    "block comment": lambda o: f'/* {{"action": "delete", "old_id": "m9"}}\n*/\n{lines(o)}',
    "array on one line": lambda o: dumped(list(o)),
    "array on lines": lambda o: "[\n" + ",\n".join(map(dumped, o)) + "\n]",
    "array with a comma too many": lambda o: "[" + ",".join(map(dumped, o)) + ",]",
    "pretty array": lambda o: json.dumps(list(o), ensure_ascii=False, indent=2),
    "pretty objects": lambda o: "\n".join(json.dumps(one, ensure_ascii=False, indent=4) for one in o),
    "on one line": lambda o: " ".join(map(dumped, o)),
    "glued": lambda o: "".join(map(dumped, o)),
    "commas between": lambda o: ", ".join(map(dumped, o)),
    "changes": lambda o: dumped({"changes": list(o)}),
    "result": lambda o: json.dumps({"result": {"changes": list(o)}}, ensure_ascii=False, indent=1),
    "named late": lambda o: dumped({"count": len(o), "actions": list(o)}),
    "byte order mark": lambda o: "\ufeff" + lines(o),
    "zero width": lambda o: "\n".join(f"\u200b{dumped(one)}\u200d\u2060" for one in o),
    "carriage returns": lambda o: lines(o).replace("\n", "\r\n") + "\r\n",
    "wide blanks": lambda o: "\n".join(f"\u3000\xa0{dumped(one)}\u3000" for one in o),
    "empty lines": lambda o: "\n\n\n" + lines(o).replace("\n", "\n \n\n"),
    "bullets": lambda o: "\n".join(f"- {dumped(one)}" for one in o),
    "numbers": lambda o: "\n".join(f"{n}. {dumped(one)}" for n, one in enumerate(o, 1)),
    "trailing remarks": lambda o: "\n".join(f"{dumped(one)} // 原因" for one in o),
    "thought": lambda o: f'<think>\nm9? {{"action": "delete", "old_id": "m9"}}\n{{ </think>\n{lines(o)}',
    "nul": lambda o: lines(o).replace(", ", ",\x00 "),
    "loud": lambda o: lines(o).replace('"keep"', '" KEEP "').replace('"delete"', '"Delete"'),
    "loud handles": lambda o: lines(o).replace('"m1"', '"M1 "').replace('"m2"', '"ｍ２"'),
    "nulls": lambda o: "\n".join(dumped({"confidence": None, "tags": None, **one}) for one in o),
    "unknown fields": lambda o: "\n".join(dumped({**one, "note": {"a": [1, {"b": 2}]}}) for one in o),
}
SLOPPY: dict[str, Callable[[Objects], str]] = {
    "trailing commas": lambda o: "\n".join(dumped(one)[:-1] + ",}" for one in o),
    "forgotten commas": lambda o: "\n".join(json.dumps(one, indent=1).replace('",\n', '"\n') for one in o),
    "unquoted keys": lambda o: "\n".join(
        "{" + ", ".join(f"{k}: {dumped(v)}" for k, v in one.items()) + "}" for one in o
    ),
    "single-quoted keys": lambda o: "\n".join(
        "{" + ", ".join(f"'{k}': {dumped(v)}" for k, v in one.items()) + "}" for one in o
    ),
    "python": lambda o: "\n".join(map(repr, o)),
    "wide": lambda o: "\n".join("｛" + "，".join(f"“{k}”：{dumped(v)}" for k, v in one.items()) + "｝" for one in o),
    "wide marks": lambda o: "\n".join(
        "｛" + "，".join(f"＂{k}＂：{dumped(v)}" for k, v in one.items()) + "｝" for one in o
    ),
    "remarks inside": lambda o: "\n".join("{ // so\n" + dumped(one)[1:-1] + " # 完\n}" for one in o),
    "fenced and wrapped": lambda o: (
        "```json\n{'changes': [\n" + ",\n".join(dumped(one)[:-1] + ",}" for one in o) + ",\n]}\n```"
    ),
}
AROUND: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "prose before": ("Here is what I would do:\n", "", ("holds no JSON",)),
    "prose after": ("", "\n希望有帮助！", ("holds no JSON",)),
    "prose on both sides": ("好的，以下是结果：\n\n", "\n\nLet me know.", ("holds no JSON", "holds no JSON")),
    "unknown action": ('{"action": "add", "statement": "x"}\n', "", ("No action is called 'add'",)),
    "no action": ('{"old_id": "m1"}\n', "", ("has no action",)),
    "number as action": ('{"action": 3}\n', "", ("action must be a text",)),
    "null action": ("", '\n{"action": null}', ("has no action",)),
    "number as handle": ("", '\n{"action": "delete", "old_id": 7}', ("old_id must be texts",)),
    "object as handle": ('{"action": "delete", "old_id": {"id": "m1"}}\n', "", ("old_id must be texts",)),
    "no handle": ('{"action": "delete"}\n', "", ("which memory to delete",)),
    "empty handle": ("", '\n{"action": "update", "old_id": " ", "statement": "x"}', ("which memory to update",)),
    "huge handle": ("", '\n{"action": "delete", "old_id": "' + "m" * 5000 + '"}', ("handle is longer",)),
    "list as statement": ("", '\n{"action": "create", "statement": ["a"]}', ("statement must be a text",)),
    "empty statement": ('{"action": "create", "statement": "\\u200b  "}\n', "", ("has no statement",)),
    "null statement": ("", '\n{"action": "update", "old_id": "m1", "statement": null}', ("has no statement",)),
    "create with a handle": ("", '\n{"action": "create", "old_id": "m1", "statement": "x"}', ("names no memory",)),
    "action twice": ('{"action": "keep", "action": "delete", "old_id": "m1"}\n', "", ("gives action twice",)),
    "handle twice": ("", '\n{"action": "delete", "old_id": "m1", "old_id": "m2"}', ("gives old_id twice",)),
    "numbers as tags": ("", '\n{"action": "keep", "tags": [1]}', ("tags must be texts",)),
    "number as reason": ("", '\n{"action": "delete", "old_id": "m1", "reason": 3}', ("reason must be a text",)),
    "cut in a text": ("", '\n{"action": "delete", "old_id": "m', ("does not end on its line",)),
    "cut in a key": ("", '\n{"action": "delete", "old', ("does not end on its line",)),
    "cut before the end": ("", '\n{"action": "delete", "old_id": "m1"', ("cut off",)),
    "cut behind a colon": ("", '\n{"action": "delete", "old_id":', ("cut off",)),
    "cut in the middle": ('{"action": "delete", "old_id":\n', "", ("before it ends",)),
    "cut at the brace": ("", "\n{", ("cut off",)),
    "text not closed": ('{"action": "delete, "old_id": "m1\n', "", ("does not end on its line",)),
    "nested deeply": ("", '\n{"action": ' + "[" * 40 + "]" * 40 + "}", ("nested more",)),
    "wrong brackets": ("", '\n{"action": "delete", "old_ids": ["m1"}', ("brackets do not match",)),
    "no colon": ("", '\n{"action" "delete", "old_id" "m1"}', ("cannot be repaired",)),
    "quoted object": ('He said "{"action": "delete", "old_id": "m1"}"\n', "", ("quotation",)),
    "endless thought": ("", '\n<think>\n{"action": "delete", "old_id": "m1"}', ("<think> never ends",)),
    "endless comment": ("", '\n/* {"action": "delete", "old_id": "m1"}', ("/* never ends",)),
    "half a pair": ("", "\n\ud800 nothing", ("holds no JSON",)),
}
MIXED = ("lines", "fence", "array on lines", "pretty objects")


def cases() -> Iterator[Case]:
    for base, objects in BASES.items():
        for name, wrap in {**WRAPPERS, **SLOPPY}.items():
            if (base, name) in ODD:
                continue
            yield Case(f"{base}, {name}", wrap(objects), objects)
        for name, (before, after, reasons) in AROUND.items():
            for wrapper in MIXED:
                yield Case(f"{base}, {wrapper}, {name}", before + WRAPPERS[wrapper](objects) + after, objects, reasons)


ODD = {("hostile", "nul"), ("hostile", "loud"), ("hostile", "loud handles")}
