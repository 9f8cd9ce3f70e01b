"""In the place of make: looks whether the Makefile has the targets, and makes no more than the environment for them."""

import re
import sys
from pathlib import Path

from doc_python import make_environment

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
TARGETS = dict(re.findall(r"^([a-z-]+):(.*)$", MAKEFILE, re.MULTILINE))

if __name__ == "__main__":
    wanted = sys.argv[1:]
    unknown = sorted(set(wanted) - TARGETS.keys())
    if unknown:
        sys.exit(f"the Makefile has no {', '.join(unknown)}")
    needed = {word for name in wanted for word in (name, *TARGETS[name].split())}
    if not Path(".venv").exists() and needed & {"setup", "$(DEMO_STAMP)"}:
        make_environment(".venv")
