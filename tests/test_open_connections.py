"""What a test leaves open is told of with its maker, wherever it is collected."""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CONFTEST = """
import pytest
import open_connections

open_connections.watch()
pytest_configure = pytest.hookimpl(trylast=True)(lambda config: open_connections.name_makers())
"""
LEAK = """
import asyncio, gc, socket, subprocess, sys
import pytest

kept = []

def {kind}():
    {make}

def test_who_leaves_it():
    kept.append({kind}())

def test_another():
    pass

def test_where_it_is_collected():
    kept.clear()
    gc.collect()
"""
MAKES = {
    "plain": "return socket.socket()",
    "in_a_circle": "one = [socket.socket()]; one.append(one); return one",
    "process": "return subprocess.Popen([sys.executable, '-c', ''], stdin=subprocess.PIPE)",
    "transport": """
    async def connected():
        one, other = socket.socketpair()
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=one)
        other.detach()
        return transport
    return asyncio.run(connected())""",
}


def test_what_is_collected_later_names_who_made_it(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for kind, make in MAKES.items():
        (tmp_path / f"test_{kind}.py").write_text(LEAK.format(kind=kind, make=make))
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "--rootdir", str(tmp_path), "-c", "/dev/null"]
    done = subprocess.run(
        [*command, "--disable-plugin-autoload", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{len(MAKES)} failed, {2 * len(MAKES)} passed" in done.stdout, done.stdout + done.stderr
    told = re.findall(r"Left open, made by (\S+) \(call\), on the thread MainThread", done.stdout)
    assert set(told) == {f"test_{kind}.py::test_who_leaves_it" for kind in MAKES}
    assert [kind for kind in MAKES if f"in {kind}\n" not in done.stdout] == []
