#!/bin/sh
# mypy 2.4.1, called by a program through `mypy.api.run`.
#
# The call raises the thresholds of Python's garbage collector for the whole process, from 700 new objects to 200,000,
# and leaves them so when it returns, whether it found errors or not. A test suite that checks types in one of its tests
# then runs the tests after it with a collector that hardly runs: what depends on cycles being collected, such as
# weak references and warnings of unclosed resources, comes later or not at all, and in another order of the tests not.
#
# Seen (Linux, Python 3.11):
#   before: (700, 10, 10)
#   after:  (200000, 30, 30)
#
# Exits with 1 if the thresholds are as before.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mypy==2.4.1
cd "$folder"
printf 'def tea(cups: int) -> str:\n    return "green" * cups\n' >kitchen.py
"$folder/venv/bin/python" - <<'PYTHON'
import gc
import sys

import mypy.api

before = gc.get_threshold()
told, wrong, status = mypy.api.run(["kitchen.py"])
after = gc.get_threshold()
print("before:", before)
print("after: ", after)
sys.exit(0 if status == 0 and before != after else 1)
PYTHON
