"""In the place of make: looks whether the Makefile has the targets, and makes nothing."""

import re
import sys
from pathlib import Path

TARGETS = re.findall(r"^([a-z-]+):", (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8"), re.M)

if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(TARGETS)
    sys.exit(f"the Makefile has no {', '.join(sorted(unknown))}" if unknown else None)
