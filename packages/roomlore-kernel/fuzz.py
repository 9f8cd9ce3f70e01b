"""Runs the kernel under the sanitizers of addresses and of undefined behaviour, with sound and hostile arguments:
`python fuzz.py [CALLS [SEED]]`. It needs a GCC or Clang with both, as the variable CC names it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FORMS = {"plain": [], "avx2": ["-mavx2", "-mfma"]}
FLAGS = ["-std=gnu11", "-O1", "-g", "-Wno-psabi", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def main(calls: str = "20000", seed: str = "1") -> None:
    compiler = [os.environ.get("CC", "cc"), *FLAGS]
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for form, flags in FORMS.items():
            made.append(f"{folder}/link_{form}.o")
            _run(*compiler, *flags, f"-DFORM={form}", "-c", HERE / "csrc/link.c", "-o", made[-1])
        sources = (HERE / "fuzz/fuzz.c", HERE / "csrc/kernel.c", HERE / "csrc/write.c")
        _run(*compiler, *sources, *made, "-lm", "-o", f"{folder}/fuzz")
        _run(f"{folder}/fuzz", calls, seed)


def _run(*command: object) -> None:
    subprocess.run([*map(str, command)], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
