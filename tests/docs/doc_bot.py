"""In the place of python where a page starts its bot: leads it to a stand-in, and ends it when that is over.

`doc_command` runs it, in a process that has roomlore imported."""

import contextlib
import os
import re
import runpy
import signal
import sys
import threading
import urllib.request
import warnings
from pathlib import Path

OVER = os.environ["STAND_IN"] + "/over"
TEXT = Path(sys.argv[1]).read_text(encoding="utf-8")
DISCORD = re.search(r"^import .*\bdiscord\b", TEXT, re.MULTILINE) is not None
TERMINATED = "SIGTERM" in TEXT
"""That bot sees to SIGTERM itself, so it gets this one, with Ctrl-C ignored as by a shell that starts it in the
background; the others are stopped with Ctrl-C."""


def end_when_over() -> None:
    try:
        urllib.request.urlopen(OVER, timeout=500).close()
    finally:
        os.kill(os.getpid(), signal.SIGTERM if TERMINATED else signal.SIGINT)


def lead_to_stand_in() -> None:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # discord.py imports audioop
        import discord
    import yarl

    discord.http.Route.BASE = os.environ["STAND_IN"] + "/api/v10"
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(os.environ["STAND_IN"]).with_path("/gateway")


def main() -> None:
    if DISCORD:
        lead_to_stand_in()
    if TERMINATED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_when_over, daemon=True).start()
    sys.path.insert(0, "")
    with contextlib.suppress(KeyboardInterrupt):
        runpy.run_path(sys.argv[1], run_name="__main__")
