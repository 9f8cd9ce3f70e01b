"""The runner of the documentation passes nothing over, and would notice a page that is wrong."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import test_how_to_pages
import test_other_pages
import test_restoring
from doc_blocks import Block, blocks_in, blocks_of, pages
from doc_follow import does
from doc_list import CHECKED, SHOWN, check_unrun
from doc_output import check_printed
from doc_page import Page
from doc_rigs import pages_with_rigs
from doc_settings import check_hosts

BLOCKS = [block for path in pages() for block in blocks_of(path)]


def of(language: str, text: str, *, title: str = "") -> Block:
    return Block("docs/page.md", 1, language, title, text)


@pytest.fixture
def page(commands, tmp_path, request, monkeypatch):
    monkeypatch.chdir(tmp_path)
    followed = Page("docs/page.md", tmp_path, commands, request.getfixturevalue)
    yield followed
    followed.close()


# Nothing is passed over.


def test_every_page_with_blocks_is_followed_once():
    """But for those of frameworks, whose programs tests/frameworks runs."""
    followed = [*test_how_to_pages.PATHS, *test_other_pages.PATHS, test_restoring.PAGE]
    others = {block.page for block in BLOCKS if not test_how_to_pages.is_of_framework(block.page)}
    assert sorted(followed) == sorted(others)
    assert {"README.md", "docs/README.zh.md", "docs/quickstart.md", "docs/quickstart.zh.md"} <= set(followed)


def test_every_fence_is_found():
    fences = sum(line.lstrip().startswith("```") for path in pages() for line in lines_of(path))
    fenced = [block for block in BLOCKS if lines_of(block.page)[block.line - 2].lstrip().startswith("```")]
    assert fences == 2 * len(fenced) > 300


def lines_of(path: str) -> list[str]:
    return (Path(__file__).parents[2] / path).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("listed", [*SHOWN, *CHECKED], ids=lambda one: f"{one.page}-{one.begins[:9]}")
def test_what_is_listed_is_there(listed):
    assert any(listed.means(block) for block in BLOCKS)
    assert listed.why


def test_nothing_that_runs_is_only_shown():
    assert not [block.place for block in BLOCKS if block.language == "sh" and any(one.means(block) for one in SHOWN)]


def test_rigs_are_for_pages_that_are_there():
    assert set(pages_with_rigs()) <= {block.page for block in BLOCKS}


# Where blocks are.


def test_blocks_of_every_kind_are_found():
    text = """Text

```python title="bot.py"
print("```")
```

    pip install roomlore

- an item

      its own paragraph

  ```sh
  roomlore rooms
  ```

    under the item

Text, then a formula:

    x = 2

    y = 3

=== "Tab"

    ~~~json
    {}
    ~~~

````text
```
````
"""
    assert [(one.line, one.language, one.title, one.text) for one in blocks_in("p.md", text)] == [
        (4, "python", "bot.py", 'print("```")\n'),
        (7, "sh", "", "pip install roomlore\n"),
        (14, "sh", "", "roomlore rooms\n"),
        (21, "text", "", "x = 2\n\ny = 3\n"),
        (28, "json", "", "{}\n"),
        (32, "text", "", "```\n"),
    ]


def test_a_block_without_an_end_is_no_block():
    with pytest.raises(ValueError, match=r"p\.md:3 opens a block that nothing closes"):
        blocks_in("p.md", "a\n\n```sh\nroomlore rooms\n")


# What a block does.


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (of("sh", "roomlore fly\n"), "No such command"),
        (of("sh", "false | true\n"), "ended with 1"),
        (of("sh", "echo $NEVER_SET\n"), "NEVER_SET: unbound variable"),
        (of("sh", "pip install 'roomlore[wings]'\n"), "roomlore has no extra wings"),
        (of("sh", "pip install discord-pie\n"), "discord-pie is not installed here"),
        (of("sh", "make tea\n"), "the Makefile has no tea"),
        (of("python", "1 / 0\n"), "division by zero"),
        (of("yaml", "memory: {max_context_messages: 0}\n"), "max_context_messages is 0"),
        (of("json", "{'a': 1}\n"), "Expecting property name"),
        (of("text", "Anything\n"), "but this was printed"),
        (of("text", "\n"), "shows nothing"),
        (of("html", "<p>\n"), "no test knows what to do with html"),
    ],
    ids=[str(number) for number in range(12)],
)
def test_a_block_that_is_wrong_is_noticed(page, block, why):
    with pytest.raises(Exception, match=why):
        does(page, block)


def test_blocks_share_a_shell_a_session_and_a_folder(page):
    page.run(of("sh", "export TEA=green; CAKE=plum; mkdir -p shop && cd shop && echo 2 > cups\n"))
    page.run(of("sh", 'echo "$TEA $CAKE $(cat cups)"\n'))
    page.run(of("text", "green plum 2\n"))
    page.run(
        of(
            "python",
            "import os\nfrom pathlib import Path\nprint(os.environ['TEA'], Path('shop/cups').read_text())\nx = 1\n",
        )
    )
    page.run(of("text", "green 2\n"))
    page.run(of("python", "import asyncio\nawait asyncio.sleep(0)\nprint(x)\n"))
    page.run(of("python", "async def main(): print(x + 1)\nasyncio.run(main())\n"))
    page.run(of("text", "2\n"))
    assert [page.run(of("python", "print(7)\n", title="say.py")), page.printed[-1]] == ["saved", "2\n"]
    page.run(of("sh", "python ../say.py\n"))
    page.run(of("text", "7\n"))


def test_a_server_that_has_ended_is_noticed(commands, tmp_path, request, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Page("docs/page.md", tmp_path, commands, request.getfixturevalue)
    page.run(of("sh", "roomlore serve\n"))
    page.run(of("sh", "curl -s localhost:8765/health/live\n"))
    ((pid, _),) = page._staying()
    page.shell(f"kill -9 {pid}; while kill -0 {pid} 2>/dev/null; do sleep 0.01; done")
    with pytest.raises(AssertionError, match="roomlore listens on"):
        page.close()


# What is printed, and what is shown.


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a 1\n\nb", "x\na   1\nb\ny"),
        ("v2 a2933f85  2026-11-22 20:34", "v2 00000001  2025-01-01 00:00"),
        ("read 12.5 ms\n…\nend", "read 3 ms\n1\n2\nend"),
        ('{"id":"01a2...","n":1}', '{"id":"01b7f2","n":1}'),
        ("event: start\nevent: text", "event: start\n: the model is at work\nevent: text"),
    ],
    ids=["spaces", "ids", "lines", "inside", "comments"],
)
def test_what_was_printed_may_have_other_ids_and_times(shown, printed):
    check_printed(shown, printed, "here")


@pytest.mark.parametrize(
    ("shown", "printed"),
    [("a 1", "a 2"), ("a\nb", "a\nc\nb"), ("b\na", "a\nb"), ("a", "a b"), ("茶 3", "茶 4"), ("a", "")],
    ids=["value", "between", "order", "more", "chinese", "nothing"],
)
def test_what_was_not_printed_is_noticed(shown, printed):
    with pytest.raises(AssertionError, match="here shows"):
        check_printed(shown, printed, "here")


# Commands that are not run.


@pytest.mark.parametrize(
    "text",
    [
        "docker compose -f deploy/compose.yaml run --rm serverr doctor",
        "docker compose -f deploy/compose.yaml run --rm server fly",
        "docker compose -f deploy/compose.yaml run --rm server keys creat bot",
        "docker compose -f deploy/compose.yaml up -d --scale workers=4",
        "docker compose -f deploy/missing.yaml up -d",
        "docker compose up -d",
        "python -m bench fly",
        "python -m bench crash --kill 300",
        "echo 'never closed",
    ],
    ids=[str(number) for number in range(9)],
)
def test_a_command_with_a_wrong_name_is_noticed(text):
    with pytest.raises((Exception, SystemExit)):
        check_unrun(of("sh", text + "\n"))


@pytest.mark.parametrize(
    "server",
    [
        {"command": "memory", "args": ["--db", "a.db", "mcp"]},
        {"command": "roomlore", "args": ["--db", "a.db", "mcp", "--fast"]},
        {"command": "roomlore", "args": ["--db", "a.db", "mcp", "--scope", "anna"]},
        {"command": "roomlore", "args": ["--db", "a.db", "mcp"], "env": {"MEMORY_TIMEZONE": "UTC"}},
        {"url": "http://127.0.0.1:8766/sse"},
    ],
    ids=[str(number) for number in range(5)],
)
def test_a_host_that_could_not_start_it_is_noticed(server):
    with pytest.raises(Exception, match=r".*"):
        check_hosts({"roomlore": server})
    check_hosts({"roomlore": {"command": "roomlore", "args": ["--db", "a.db", "mcp", "--scope", "user:安娜"]}})


def test_sqlites_own_copy_where_there_is_no_program(tmp_path):
    program = Path(__file__).parent / "doc_sqlite3.py"
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE tea AS SELECT '乌龙' AS kind")
    database.close()
    subprocess.run([sys.executable, program, "a.db", ".backup 'b.db'"], cwd=tmp_path, check=True, timeout=60)
    with sqlite3.connect(tmp_path / "b.db") as copy:
        assert copy.execute("SELECT kind FROM tea").fetchall() == [("乌龙",)]
    copy.close()
