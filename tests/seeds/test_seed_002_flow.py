"""Seed 002, the flow of an evolution, the model's answers and their repair, and the prompt."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from group_memory import (
    GROUP,
    KNOWN,
    active,
    block,
    create,
    delete,
    evolving,
    jsonl,
    keep,
    remember,
    said,
    talk,
    update,
)

from roomlore import MemoryStatus
from roomlore_testkit.loopback import LoopbackServer
from roomlore_testkit.model_server import Asked, ModelServer

TALK = [
    "这周的新番《星之海》怎么样？",
    "还不错，画质很棒，科幻题材最合胃口",
    "我们下周五晚上继续聊新番吧",
    "我是做前端开发的，有没有推荐的技术书？",
    "我也是前端，可以推荐《重构》",
]


# 核心演进流程


async def test_without_new_messages_the_model_is_not_asked_and_the_answer_says_so():
    async with ModelServer() as server, evolving(server) as lore:
        await remember(lore, KNOWN[:1])
        await talk(lore, TALK)
        server.script = [jsonl(keep("m1"))]
        await lore.memories.evolve(GROUP)
        again = await lore.memories.evolve(GROUP)
        assert (again.message, again.changes, again.messages) == ("There are no new messages.", (), 0)
        assert len(server.requests) == 1


async def test_existing_memories_and_new_messages_go_to_the_model_in_one_call():
    async with ModelServer([jsonl(keep("m1"))]) as server, evolving(server) as lore:
        await remember(lore, KNOWN[:2])
        await talk(lore, TALK)
        await lore.memories.evolve(GROUP, days=1)
        (asked,) = server.requests
        assert [line.partition("]: ")[2] for line in block(asked, "memories")] == list(KNOWN[:2])
        assert [line.partition("] ")[2] for line in block(asked, "messages")] == [
            f"User {name}: {text}" for name, text in zip("ABCDA", TALK, strict=True)
        ]
        assert asked.model == "gemini-2.5-flash-preview"


async def test_days_is_one_by_default_and_bounds_the_first_evolution():
    async with ModelServer(default=jsonl(create(KNOWN[1], "c1"))) as server, evolving(server) as lore:
        await talk(lore, TALK[:3], ago=[3, 2, 0.5])
        assert (await lore.memories.evolve(GROUP)).messages == 1
        await talk(lore, TALK[:3], ago=[3, 2, 0.5], group="other", first=11)
        assert (await lore.memories.evolve("other", days=7)).messages == 3
        await talk(lore, TALK[3:4], ago=[3], group="other", first=21)
        assert (await lore.memories.evolve("other", days=1)).messages == 1


async def test_keep_changes_nothing_and_is_not_logged():
    async with ModelServer([jsonl(keep("m1"), keep("m2"))]) as server, evolving(server) as lore:
        await remember(lore, KNOWN[:2])
        before = await lore.memories.changes(f"group:{GROUP}")
        await talk(lore, TALK)
        result = await lore.memories.evolve(GROUP)
        assert (result.stats.kept, result.changes) == (2, ())
        assert await lore.memories.changes(f"group:{GROUP}") == before
        assert await active(lore) == list(KNOWN[:2])


async def test_a_memory_that_the_model_does_not_mention_is_kept():
    async with ModelServer([jsonl(create("成员普遍从事前端开发工作", "c4", "c5"))]) as server, evolving(server) as lore:
        await remember(lore, KNOWN[:2])
        await talk(lore, TALK)
        assert (await lore.memories.evolve(GROUP)).stats.kept == 2


async def test_update_makes_a_new_version_and_is_logged():
    better = "每周五晚上讨论新番动漫，偏好科幻题材"
    async with ModelServer([jsonl(update("m1", better, "c2", "c3"))]) as server, evolving(server) as lore:
        (old,) = await remember(lore, KNOWN[1:2])
        await talk(lore, TALK)
        result = await lore.memories.evolve(GROUP)
        (head,) = await lore.memories.page(f"group:{GROUP}")
        assert (result.stats.updated, head.statement, head.version, head.parent_id) == (1, better, 2, old)
        assert (await lore.memories.get(old)).status is MemoryStatus.DEPRECATED
        (change,) = result.changes
        assert (change.action, change.old_statement, change.reason) == ("update", KNOWN[1], "新讨论明确了偏好类型")


async def test_create_inserts_a_first_version_and_is_logged():
    new = "成员普遍从事前端开发工作"
    async with ModelServer([jsonl(create(new, "c4", "c5", tags=["观点"]))]) as server, evolving(server) as lore:
        await talk(lore, TALK)
        result = await lore.memories.evolve(GROUP)
        (made,) = await lore.memories.page(f"group:{GROUP}")
        assert (made.statement, made.version, made.parent_id, made.tags) == (new, 1, None, ("观点",))
        assert [(one.action, one.reason) for one in result.changes] == [("create", "多次讨论中验证的稳定特征")]


async def test_delete_marks_a_memory_deprecated_and_is_logged():
    async with ModelServer([jsonl(delete("m1", "c1", reason="新番小组已经解散"))]) as server, evolving(server) as lore:
        (old,) = await remember(lore, KNOWN[1:2])
        await talk(lore, ["每周五晚上不再讨论新番动漫了，小组已经解散"])
        result = await lore.memories.evolve(GROUP)
        gone = await lore.memories.get(old)
        assert (result.stats.deleted, gone.status) == (1, MemoryStatus.DEPRECATED)
        assert await lore.memories.page(f"group:{GROUP}") == []
        assert [(one.action, one.reason) for one in result.changes] == [("delete", "新番小组已经解散")]


# JSON解析容错处理, 错误处理示例

ROWS = {
    "正常JSON": ('{"action": "keep", "old_id": "m1"}', 1, 0),
    "缺少引号": ("{action: delete, old_id: m1, evidence: [c1]}", 0, 1),
    "多余逗号": ('{"action": "delete", "old_id": "m1", "evidence": ["c1",],}', 0, 1),
    "单引号": ("{'action': 'delete', 'old_id': 'm1', 'evidence': ['c1']}", 0, 1),
    "markdown代码块": ('```json\n{"action": "delete", "old_id": "m1", "evidence": ["c1"]}\n```', 0, 1),
    "注释行": (
        '# 下面是结果\n// 一条删除\n{"action": "delete", "old_id": "m1", "evidence": ["c1"]}',
        0,
        1,
    ),
}


@pytest.mark.parametrize("row", ROWS)
async def test_an_answer_of_this_form_is_read(row):
    text, kept, deleted = ROWS[row]
    async with ModelServer([text]) as server, evolving(server) as lore:
        await remember(lore, KNOWN[1:2])
        await talk(lore, ["每周五晚上不再讨论新番动漫了"])
        result = await lore.memories.evolve(GROUP)
        assert (result.stats.kept, result.stats.deleted, result.rejected) == (kept, deleted, ())
        assert len(server.requests) == 1


async def test_an_answer_without_any_json_changes_nothing_and_is_reported():
    async with ModelServer(default="这不是JSON") as server, evolving(server) as lore:
        await remember(lore, KNOWN[:1])
        await talk(lore, TALK)
        result = await lore.memories.evolve(GROUP)
        assert (result.failed, result.changes, await active(lore)) == (True, (), [KNOWN[0]])
        assert {(one.text, one.reason) for one in result.rejected} == {("这不是JSON", "It holds no JSON object.")}


async def test_a_broken_line_is_skipped_and_the_others_count():
    answer = (
        jsonl(create("成员普遍从事前端开发工作", "c4", "c5"))
        + '\n这不是JSON\n{"action": "explode"}\n'
        + jsonl(keep("m1"))
    )
    async with ModelServer([answer], default="[]") as server, evolving(server) as lore:
        await remember(lore, KNOWN[:1])
        await talk(lore, TALK)
        result = await lore.memories.evolve(GROUP)
        assert (result.stats.created, result.stats.kept) == (1, 1)
        assert [(one.line, one.text) for one in result.rejected] == [(2, "这不是JSON"), (3, '{"action": "explode"}')]
        assert len(server.requests) == 2
        assert "No action is called" in server.requests[1].prompt


# Langfuse Prompt设计


async def prompt_of(*, known: int = 2) -> Asked:
    async with ModelServer([jsonl(keep("m1"))]) as server, evolving(server) as lore:
        ids = await remember(lore, KNOWN[:known])
        await talk(lore, TALK)
        await lore.memories.evolve(GROUP)
        assert not [one for one in (*ids, *(message.id for message in said(TALK))) if one in server.requests[0].prompt]
        return server.requests[0]


async def test_the_prompt_is_called_memory_evolve_and_every_version_names_it():
    async with ModelServer([jsonl(create(KNOWN[1], "c1", "c3"))]) as server, evolving(server) as lore:
        await talk(lore, TALK)
        await lore.memories.evolve(GROUP)
        (made,) = await lore.memories.page(f"group:{GROUP}")
        (version,) = (await lore.memories.blame(made.memory_id)).versions
        assert version.evolution is not None
        assert (version.evolution.prompt_name, len(version.evolution.prompt_hash) >= 8) == ("memory_evolve", True)


class Langfuse(LoopbackServer):
    """A Langfuse that has one prompt. `asked`: the names that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.split()[1].partition("?")[0].rpartition("/")[2])
        prompt = "请整理这个群的记忆，最多 {{most}} 条。\n{{memories}}\n{{messages}}"
        body = json.dumps({"type": "text", "prompt": prompt, "version": 7, "labels": ["production"]}).encode()
        status = "200 OK" if self.asked[-1] == "memory_evolve" else "404 Not Found"
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return True


async def test_the_prompt_is_taken_from_langfuse_where_one_is_configured():
    async with Langfuse() as langfuse, ModelServer([jsonl(create(KNOWN[1], "c1"))]) as server:
        keys = {"langfuse_public_key": "pk-lf-1", "langfuse_secret_key": "sk-lf-1"}
        async with evolving(server, langfuse_host=langfuse.url, **keys) as lore:
            await talk(lore, TALK)
            await lore.memories.evolve(GROUP)
        assert server.requests[0].prompt.startswith("请整理这个群的记忆，最多 30 条。")
        assert "memory_evolve" in langfuse.asked


RULES = {
    "记忆类型": "固定的活动和习惯、大多数人的看法、成员的共同背景、相处的方式、约定和禁忌",
    "JSON Lines": "每行输出一个 JSON 对象",
    "保留 (keep)": '{"action": "keep", "old_id": ',
    "更新 (update)": '{"action": "update", "old_id": ',
    "删除 (delete)": '{"action": "delete", "old_id": ',
    "新增 (create)": '{"action": "create", ',
    "稳定性优先": "才算稳定；拿不准就不要新增",
    "简洁准确": "客观简洁",
    "优先更新": "能修订就不新增",
    "谨慎删除": "时才删除",
    "保持一致": "与已有记忆的语言和口吻一致",
}


@pytest.mark.parametrize("rule", RULES)
def test_the_prompt_of_a_chinese_group_tells_the_model(rule):
    assert RULES[rule] in _chinese_prompt()


_kept: list[str] = []


def _chinese_prompt() -> str:
    if not _kept:
        _kept.append(asyncio.run(prompt_of()).prompt)
    return _kept[0]


async def test_the_prompt_shows_each_memory_with_its_version_and_day():
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert block(await prompt_of(), "memories") == [f"m1 [v1, {today}]: {KNOWN[0]}", f"m2 [v1, {today}]: {KNOWN[1]}"]


async def test_an_id_in_place_of_a_handle_is_refused():
    async with ModelServer() as server, evolving(server) as lore:
        (memory_id,) = await remember(lore, KNOWN[:1])
        server.default = jsonl(delete(memory_id, "c1"))
        await talk(lore, TALK)
        result = await lore.memories.evolve(GROUP)
        assert (result.changes, await active(lore)) == ((), [KNOWN[0]])
        assert [one.reason for one in result.rejected if "is no handle, and ids are not looked up" in one.reason]
