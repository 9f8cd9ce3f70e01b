"""The frameworks that roomlore is tested inside, each at its lowest and its newest version, in an own environment.

`python tests/frameworks/matrix.py lock | test | page [framework...]`; the Makefile calls it. `lock` asks the package
index for the versions, `test` installs them in .frameworks/ and runs the tests there, `page` writes the table of
docs/how-to/frameworks.md.
"""

import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "tests/frameworks/locks"
PAGE = ROOT / "docs/how-to/frameworks.md"
WHICH = ("lowest", "newest")
BEGIN, END = "<!-- versions: made by `make frameworks` -->", "<!-- versions end -->"

_SILENT = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}
"""CrewAI reports to its makers unless it is told not to before it is imported."""
_UV = Path(sys.executable).with_name("uv")
_PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE | re.IGNORECASE)
_COMPILE = (
    "--universal", "--python-version", "3.11", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links",
    "--no-header", "--quiet", "--upgrade",
)  # fmt: skip
_SIZES = """
import sys
from importlib.metadata import distributions
apart = set(sys.argv[1].split(","))
paths = (one.locate_file(file) for one in distributions() if one.name.lower().replace("_", "-") not in apart
         for file in one.files or ())
print(sum(path.stat().st_size for path in paths if path.is_file()))
"""


@dataclass(frozen=True)
class Framework:
    """`package`: its distribution, `title`: its name. `extra`: True if roomlore has an extra of this name, else a
    group of dependencies has it. `beside`: a group that its tests need too. The page and the module of tests are called
    after it."""

    name: str
    title: str
    package: str
    extra: bool = False
    beside: str = ""

    @property
    def tests(self) -> Path:
        return ROOT / f"tests/frameworks/test_{self.name.replace('-', '_')}.py"

    def lock(self, which: str) -> Path:
        return LOCKS / f"{self.name}-{which}.txt"

    def environment(self, which: str) -> Path:
        return ROOT / ".frameworks" / f"{self.name}-{which}"

    def version(self, which: str) -> str:
        """Return the version that a lock pins, the newest of several."""
        return pinned(self.lock(which))[self.package]


FRAMEWORKS = (
    Framework("llama-index", "LlamaIndex", "llama-index-core", extra=True),
    Framework("google-adk", "Google ADK", "google-adk", extra=True),
    Framework("agent-framework", "Microsoft Agent Framework", "agent-framework-core", extra=True),
    Framework("pydantic-ai", "Pydantic AI", "pydantic-ai-slim"),
    Framework("autogen", "AutoGen", "autogen-agentchat"),
    Framework("crewai", "CrewAI", "crewai"),
    Framework("openai-protocol", "LiteLLM", "litellm"),
    Framework("mcp", "MCP's SDK", "mcp", extra=True, beside="nodejs"),
)


def pinned(lock: Path) -> dict[str, str]:
    """Return the distributions of a lock file with their versions."""
    return _names(lock.read_text(encoding="utf-8"))


_FOLDERS = (
    ".",
    *(f"packages/roomlore-{name}" for name in ("importers", "server", "console", "integrations", "testkit")),
)
_OWN = tuple(part for folder in _FOLDERS for part in ("--editable", folder))


def _names(text: str) -> dict[str, str]:
    return {name.lower().replace("_", "-"): version for name, version in _PINNED.findall(text)}


def lock(framework: Framework) -> None:
    """Ask the package index for the versions that pyproject.toml allows."""
    LOCKS.mkdir(exist_ok=True)
    wanted = ["--extra" if framework.extra else "--group", framework.name]
    wanted += ["--group", framework.beside] if framework.beside else []
    for which in WHICH:
        resolution = ["--resolution", "lowest-direct"] if which == "lowest" else []
        asked = ["pip", "compile", "pyproject.toml", *wanted, "--group", "build", "--group", "frameworks"]
        target = framework.lock(which)
        _run(str(_UV), *asked, *resolution, *_COMPILE, "--output-file", str(target.relative_to(ROOT)))


def install(framework: Framework, which: str) -> Path:
    """Install what a lock pins, unless it is there, and return the interpreter."""
    environment, pins = framework.environment(which), framework.lock(which)
    python, stamp = environment / "bin/python", environment / ".installed"
    wanted = hashlib.sha256(pins.read_bytes() + repr(_OWN).encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-compile")
    _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(environment))
    _run(*pip, "-r", str(pins))
    _run(*pip, "--no-build-isolation", *_OWN)
    stamp.write_text(wanted, encoding="utf-8")
    return python


def test(framework: Framework) -> str:
    """Run the tests of a framework inside its lowest and its newest version and return what they print. Its own
    warnings count for nothing."""
    told = []
    for which in WHICH:
        python = install(framework, which)
        asked = ["-m", "pytest", "--quiet", "--no-header", "-W", "default", "--disable-warnings"]
        tests = str(framework.tests.relative_to(ROOT))
        printed = _run(str(python), *asked, "--confcutdir", "tests/frameworks", tests)
        told.append(f"{framework.title} {framework.version(which)}\n{printed}")
    return "".join(told)


def test_all(frameworks: list[Framework]) -> None:
    """Test as many frameworks at a time as there are processors. A failure ends the program, after what has begun."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for one in as_completed([pool.submit(test, framework) for framework in frameworks]):
            if one.exception():
                pool.shutdown(wait=True, cancel_futures=True)
            sys.stdout.write(one.result())
            sys.stdout.flush()


def table(megabytes: dict[str, int]) -> str:
    """Return the table of versions."""
    rows = [
        f"| [{one.title}]({one.name}.md) | `{one.package}` | {one.version('lowest')} | {one.version('newest')} "
        f"| {megabytes[one.name]} MB |"
        for one in FRAMEWORKS
    ]
    head = "| framework | package | lowest version | newest version | weight beside roomlore |\n|---|---|---|---|---|"
    return "\n".join([head, *rows])


def page() -> None:
    """Write the table into the page, with the weights of the environments in .frameworks/."""
    beside = [part for one in FRAMEWORKS if one.beside for part in ("--group", one.beside)]
    asked = ["pip", "compile", "pyproject.toml", "--group", "build", "--group", "frameworks", *beside, *_COMPILE]
    done = subprocess.run([str(_UV), *asked], cwd=ROOT, capture_output=True, text=True, check=True)
    own = set(_names(done.stdout))
    megabytes = {one.name: round(_bytes(one, own) / 1e6) for one in FRAMEWORKS}
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(megabytes)}\n\n{END}{after}", encoding="utf-8")


def _bytes(framework: Framework, own: set[str]) -> int:
    python = install(framework, "newest")
    command = [str(python), "-c", _SIZES, ",".join(own)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _run(*command: str) -> str:
    """Return what a command prints. Raise `SystemExit` with it if it fails."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | _SILENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def main(what: str, *names: str) -> None:
    chosen = [one for one in FRAMEWORKS if not names or one.name in names]
    assert len(chosen) == (len(names) or len(FRAMEWORKS)), f"the frameworks are {[one.name for one in FRAMEWORKS]}"
    if what == "page":
        page()
    elif what == "test":
        test_all(chosen)
    else:
        for framework in chosen:
            lock(framework)


if __name__ == "__main__":
    main(*sys.argv[1:])
