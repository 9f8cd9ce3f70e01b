"""Makes the wheels of all platforms: `python build_wheels.py FOLDER [PLATFORM ...]`."""

import os
import subprocess
import sys
from pathlib import Path

from hatch_build import HERE, TARGETS


def main(folder: str, *platforms: str) -> None:
    into = str(Path(folder).resolve())
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", into]
    for platform in platforms or TARGETS:
        subprocess.run(command, cwd=HERE, env={**os.environ, "ROOMLORE_KERNEL_PLATFORM": platform}, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
