"""The blocks that no test runs or compares, each with the reason, and what is looked at in them all the same."""

import argparse
import re
import shlex
import subprocess
from dataclasses import dataclass

import typer
import yaml
from bench.__main__ import BENCHES
from doc_blocks import ROOT, Block

from roomlore.surfaces.cli.app import app

FORMULA = "a formula"
SYNTAX = "the form of a command, with words for what to put there"
BENCH = "takes minutes to hours; its name and options are checked"
DOCKER = "needs Docker and images from elsewhere; files, services and commands of ours are checked"
PROGRAM = "needs another program, which a test runs the plugin without"
NPM = "fetches packages from npm; tests/typescript builds and installs the same with those of its lock file"
LOCK = "asks a package index; part of a longer command"


@dataclass(frozen=True)
class Listed:
    """`begins`: how the text of the blocks begins that are meant."""

    page: str
    begins: str
    why: str

    def means(self, block: Block) -> bool:
        text_or_commands = block.language in ("", "text", "sh")
        return block.page == self.page and text_or_commands and block.text.lstrip().startswith(self.begins)


SHOWN = [
    Listed("docs/explanation/asked-later.md", "P(a message belongs)", FORMULA),
    Listed("docs/explanation/recall.md", "score = ", FORMULA),
    Listed("docs/explanation/recall.md", "relevance = ", FORMULA),
    Listed("docs/explanation/search.md", "score = ", FORMULA),
    Listed("docs/explanation/soft-threads.md", "P(t answers q)", FORMULA),
    Listed("docs/explanation/soft-threads.md", "P(t and c in one thread)", FORMULA),
    Listed("docs/explanation/soft-threads.md", "2 * (sum of p", FORMULA),
    Listed("docs/how-to/scaling.md", "month = ", FORMULA),
    Listed("docs/reference/cli.md", "roomlore [--db URL]", SYNTAX),
]
"""Nothing prints them, so there is nothing to compare."""

CHECKED = [
    Listed("docs/decisions/0006-lock-file-without-addresses.md", "uv pip compile", LOCK),
    Listed("docs/explanation/crash-safety.md", "python -m bench", BENCH),
    Listed("docs/explanation/memory-search.md", "python -m bench", BENCH),
    Listed("docs/explanation/recall.md", "python -m bench", BENCH),
    Listed("docs/explanation/search-speed.md", "python -m bench", BENCH),
    Listed("docs/explanation/session-speed.md", "python -m bench", BENCH),
    Listed("docs/explanation/speed.md", "python -m bench", BENCH),
    Listed("docs/explanation/summaries.md", "python -m bench", BENCH),
    Listed("docs/how-to/back-up-and-restore.md", "docker compose", DOCKER),
    Listed("docs/how-to/one-container.zh.md", "docker build", DOCKER),
    Listed("docs/how-to/one-container.zh.md", "docker compose", DOCKER),
    Listed("docs/how-to/hermes.md", "pip install roomlore\n", PROGRAM),
    Listed("docs/how-to/langbot.zh.md", "pip install", PROGRAM),
    Listed("docs/how-to/openclaw.md", "cd plugins/openclaw-roomlore", PROGRAM),
    Listed("docs/how-to/openclaw.md", "pip install", PROGRAM),
    Listed("docs/how-to/typescript.md", "cd clients/typescript", NPM),
    Listed("docs/how-to/typescript.zh.md", "cd clients/typescript", NPM),
    Listed("docs/how-to/production.md", "git clone", DOCKER),
    Listed("docs/how-to/production.zh.md", "git clone", DOCKER),
    Listed("docs/how-to/production.zh.md", "git pull", DOCKER),
    Listed("docs/how-to/production.md", "docker build", DOCKER),
    Listed("docs/how-to/production.md", "git pull", DOCKER),
]
"""Not run. Their shell syntax, and every name of ours in them, is checked."""


def check_unrun(block: Block) -> None:
    """Raises where a shell, the benches, the compose file or the command line would not know what it names."""
    subprocess.run(["bash", "-n", "-c", block.text], check=True, timeout=60)
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:3] == ["python", "-m", "bench"]:
            _check_bench(words[3:], block)
        elif words[:2] == ["docker", "compose"]:
            _check_compose(words[2:], block)


def _check_bench(words: list[str], block: Block) -> None:
    name, *rest = words
    assert name in BENCHES, f"{block.place}: there is no bench {name}"
    parser = argparse.ArgumentParser()
    BENCHES[name].add_arguments(parser)
    known = {option for action in parser._actions for option in action.option_strings}
    unknown = {word.strip("[]") for word in rest if word.strip("[]").startswith("--")} - known
    assert not unknown, f"{block.place}: python -m bench {name} has no {unknown}"


def _check_compose(words: list[str], block: Block) -> None:
    assert words[0] == "-f", f"{block.place} does not say which compose file"
    services = yaml.safe_load((ROOT / words[1]).read_text(encoding="utf-8"))["services"]
    verb, *rest = words[2:]
    scaled = re.findall(r"--scale (\S+)=", " ".join(rest))
    named = [word for word in rest if not word.startswith("-") and "=" not in word]
    assert set(scaled) | set(named[:1]) <= services.keys(), f"{block.place} names a service that is not there"
    if verb == "run":
        check_command(named[1:])


def check_command(words: list[str]) -> None:
    """Raises unless `roomlore` has this command and its arguments."""
    command, context, name = typer.main.get_command(app), None, "roomlore"
    while True:
        context = command.make_context(name, list(words), parent=context)
        if not hasattr(command, "resolve_command"):
            return
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
