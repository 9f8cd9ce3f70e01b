"""The OpenClaw plugin in the hands of a stand-in for the gateway (`test/host.ts`), against a real `roomlore serve`.

Node comes with Playwright. OpenClaw itself is 330 MB: by hand, `npm install && npm run check` in the plugin's folder
compares the plugin with its types.
"""

import json
import re
import subprocess
from pathlib import Path

import playwright
from plugin_server import serving

FOLDER = Path(__file__).parents[2] / "plugins" / "openclaw-roomlore"
NODE = Path(playwright.__file__).parent / "driver" / "node"


def test_the_hooks_and_tools_of_the_plugin(monkeypatch, tmp_path):
    with serving(monkeypatch, tmp_path) as url:
        tests = sorted(FOLDER.glob("test/*.test.ts"))
        done = subprocess.run(
            [NODE, "--test", "--test-reporter=tap", *tests],
            cwd=FOLDER, env={"ROOMLORE_URL": url}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    counts = dict(re.findall(r"^# (\w+) (\d+)$", done.stdout, re.MULTILINE))
    assert int(counts["pass"]) == int(counts["tests"]) >= 24
    assert counts["fail"] == counts["skipped"] == counts["todo"] == "0"


def test_the_manifest_names_what_the_code_registers_and_reads():
    manifest = json.loads((FOLDER / "openclaw.plugin.json").read_text(encoding="utf-8"))
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    entry = (FOLDER / "src" / "index.ts").read_text(encoding="utf-8")
    settings = (FOLDER / "src" / "settings.ts").read_text(encoding="utf-8")
    assert manifest["contracts"]["tools"] == re.findall(r'\{ name: "(\w+)" \}', entry)
    assert f'id: "{manifest["id"]}"' in entry
    assert manifest["version"] == package["version"]
    assert manifest["kind"] == "memory"
    properties = set(manifest["configSchema"]["properties"])
    assert properties == set(re.findall(r'given\["(\w+)"\]', settings)) == set(manifest["uiHints"])
    assert "dependencies" not in package, "the plugin runs without packages of others"
