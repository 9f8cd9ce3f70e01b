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
    if not Path(".venv").exists() and any("setup" in (name, *TARGETS[name].split()) for name in wanted):
        make_environment(".venv")
