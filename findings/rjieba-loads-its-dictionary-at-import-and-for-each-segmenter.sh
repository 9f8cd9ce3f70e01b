#!/bin/sh
# rjieba 0.2.2 (Python binding of jieba-rs).
#
# `import rjieba` alone parses the whole default dictionary, as the module's own functions `cut`, `tag` and so on share
# one segmenter that is made at import. `rjieba.Jieba()` parses it once more for itself: nothing is shared, so a program
# that makes a segmenter of its own holds the dictionary twice.
#
# Seen (Linux, Python 3.11):
#   import: 33 MB, Jieba(): 24 MB, another Jieba(): 25 MB
#   cut without a segmenter of one's own: ['周五', '去', '喝茶']
#
# Exits with 1 if importing no longer loads it, or if a segmenter no longer loads its own.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q rjieba==0.2.2
"$folder/venv/bin/python" - <<'PYTHON'
import sys


def resident() -> float:
    """Return the megabytes of memory of this process."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


before = resident()
import rjieba

imported = resident()
first = rjieba.Jieba()
made = resident()
second = rjieba.Jieba()
again = resident()
sizes = imported - before, made - imported, again - made
print("import: {:.0f} MB, Jieba(): {:.0f} MB, another Jieba(): {:.0f} MB".format(*sizes))
print("cut without a segmenter of one's own:", rjieba.cut("周五去喝茶"))
sys.exit(0 if min(sizes) > 10 else 1)
PYTHON
