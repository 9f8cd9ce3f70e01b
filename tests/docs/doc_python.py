"""In the place of python3: an environment that it makes sees what is installed here, and has no pip of its own."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path


def make_environment(folder: str) -> None:
    """As `python3 -m venv`, at once and without asking anybody for packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = Path(folder).glob("lib/python*/site-packages")
    (packages / "outside.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")


if __name__ == "__main__":
    if sys.argv[1:3] != ["-m", "venv"]:
        os.execv(sys.executable, ["python3", *sys.argv[1:]])
    make_environment(*sys.argv[3:])
