"""The programs in the documents run as they stand, one after the other, on one database."""

import re
from pathlib import Path

import langchain_core  # noqa: F401 - first, since it sets warning filters of its own when imported
import mcp  # noqa: F401 - before standard error is held, which its client keeps from the start
import pytest

ROOT = Path(__file__).parents[2]
PLACES = (
    "README.md",
    "docs/README.zh.md",
    "docs/how-to/sessions.md",
    "docs/how-to/facts.md",
    "docs/how-to/group-memory.md",
    "docs/how-to/langchain.md",
    "docs/how-to/mcp.md",
    "docs/how-to/replies.md",
    "docs/how-to/workers.md",
    "docs/explanation/short-memories.md",
    "docs/how-to/recall.md",
    "docs/reference/settings.md",
)


def programs(place: str) -> list[str]:
    """The Python blocks that are whole programs; fragments do not import roomlore."""
    text = (ROOT / place).read_text(encoding="utf-8")
    return [block for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) if "import roomlore" in block]


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
def test_programs_run_in_order(capsys):
    run = 0
    for place in PLACES:
        for number, program in enumerate(programs(place), 1):
            exec(compile(program, f"{place}, program {number}", "exec"), {"__name__": "__main__"})
            run += 1
    told = capsys.readouterr().out
    assert run >= 7
    assert "周五聚餐去哪儿？" in told
    assert "my-model" in told
    assert "2 现在只喝乌龙茶 0.0" in told
    assert "1 ('user:anna',) [('results[1]', 'it has no memory')]" in told
    assert "['They watch anime']" in told
    assert "9 tools\n<memory>\n- 安娜喜欢乌龙茶\n- Anna rides a bike to work\n</memory>" in told
    assert "带防晒霜。" in told
    assert "茉莉花茶，" in told
    assert "['human', 'ai', 'human', 'ai'] 当然。" in told
    assert "system \nuser memory_context\nuser \n" in told
