"""The image and the compose file name nothing that is not there: settings, ports, paths, commands, extras, files."""

import json
import os
import re
import shlex
import subprocess
import tomllib
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import typer
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import roomlore
from roomlore.core.chat import KNOWN_PROVIDERS
from roomlore.settings import PREFIX, Settings, known_fields
from roomlore.surfaces.cli.app import app
from roomlore_server.http import create_app

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
FOLDERS = ROOT / "packages/folders.txt"
OWN = {f"roomlore-{name}" for name in ("importers", "server", "console", "integrations")}
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
ONE = yaml.safe_load((ROOT / "deploy" / "compose.one.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "roomlore"]
EXAMPLE = (ROOT / "deploy" / "env.example").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SECRET = "0a1b2c"


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} +(.*)$", DOCKERFILE, re.MULTILINE)


def image_environment() -> dict[str, str]:
    pairs = (pair for line in instructions("ENV") for pair in line.split())
    return dict(pair.split("=", 1) for pair in pairs)


def example() -> dict[str, str]:
    """Return the settings of the example, commented variables too."""
    return dict(re.findall(r"^#?([A-Z][A-Z0-9_]*)=(.*)$", EXAMPLE, re.MULTILINE))


def filled(text: str) -> str:
    """As Docker Compose fills in variables, with a secret for each that must be set."""
    text = re.sub(r"\$\{[A-Z_]+:\?[^}]*\}", SECRET, text)
    return re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", text)


def settings_of(environment: dict[str, str], monkeypatch) -> Settings:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        if name.startswith(PREFIX):
            monkeypatch.setenv(name, filled(value))
    settings = Settings()
    assert settings.ignored == ()
    return settings


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


# The image.


def test_the_image_starts_from_a_python_that_will_do():
    (python,) = re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert f"{python}.0" in SpecifierSet(PROJECT["requires-python"])
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    assert instructions("FROM") == ["${REGISTRY}python:${PYTHON}-slim AS build", "${REGISTRY}python:${PYTHON}-slim"]


def test_the_image_and_its_packages_may_come_from_mirrors(tmp_path):
    """Without the arguments nothing differs: an empty index would be no index at all."""
    head, _, rest = DOCKERFILE.partition("FROM ")
    assert re.findall(r"^ARG (\w+)=(.*)$", head, re.MULTILINE) == [("PYTHON", "3.12"), ("REGISTRY", "")]
    build, _, _ = rest.partition("FROM ")
    assert "ARG PIP_INDEX_URL=\n" in build
    (guard,) = re.findall(r"&& (if \[ -z .*?; fi)", build)
    asked = f'{guard}; echo "[${{PIP_INDEX_URL-unset}}]"'
    for given, seen in (("", "[unset]"), ("https://mirror.example/simple", "[https://mirror.example/simple]")):
        done = subprocess.run(
            ["sh", "-c", asked], env={"PIP_INDEX_URL": given}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == seen


def test_what_is_copied_into_the_image_is_there_and_not_ignored():
    wanted = [name.lstrip("./") for line in instructions("COPY") if "--from" not in line for name in line.split()[:-1]]
    assert {"pyproject.toml", "requirements.lock", "src", "packages"} <= set(wanted)
    kept = [line[1:] for line in IGNORED if line.startswith("!")]
    for name in wanted:
        assert (ROOT / name).exists()
        assert any(fnmatch(name, pattern) for pattern in kept), name
    assert PROJECT["readme"] in wanted
    assert set(PROJECT["license-files"]) <= set(wanted)


def test_the_constraints_of_the_image_pin_what_the_project_needs():
    (command,) = re.findall(r"(sed .*?) > /constraints.txt", DOCKERFILE)
    done = subprocess.run(shlex.split(command), cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line and not line.lstrip().startswith("#")]
    pinned = {Requirement(line).name for line in lines}
    assert all(str(Requirement(line).specifier).startswith("==") for line in lines)
    extras = (one for name in extras_of_the_image() for one in PROJECT["optional-dependencies"][name])
    needed = {Requirement(one).name.lower() for one in [*PROJECT["dependencies"], *extras]}
    assert needed - OWN - {"roomlore-kernel"} <= pinned


@pytest.mark.parametrize("name", ["Dockerfile", "docs/quickstart.md", "docs/quickstart.zh.md", "docs/README.zh.md"])
def test_an_install_from_a_clone_names_the_library_first(name):
    """Pip of Debian 12 does not look among later folders for what the other packages need."""
    text = (ROOT / name).read_text(encoding="utf-8")
    installs = re.findall(r"'\.\[[a-z,]+\]'.*", text)
    assert installs
    assert [one for one in installs if not re.match(r"'\.\[[a-z,]+\]' -r packages/folders.txt", one)] == []


def test_the_folders_of_an_install_from_a_clone_are_those_that_the_library_needs():
    named = {Path(line).name for line in FOLDERS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    assert named == OWN


def extras_of_the_image() -> set[str]:
    return set(re.search(r"'\.\[([a-z,-]+)\]'", DOCKERFILE).group(1).split(","))


def test_the_image_has_the_extras_that_the_compose_file_needs():
    needed = {"server", "postgres", "durable", "redis", "qdrant", "embeddings", "openai", "mcp"}
    assert needed <= extras_of_the_image() <= set(PROJECT["optional-dependencies"])


def test_the_image_runs_as_nobody_special_with_settings_that_hold(monkeypatch):
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", instructions("USER")[-1])
    settings = settings_of(image_environment(), monkeypatch)
    assert instructions("EXPOSE") == [str(settings.port)]
    assert settings.database_url.removeprefix("sqlite:///").startswith(instructions("VOLUME")[0])
    assert json.loads(instructions("ENTRYPOINT")[0]) == list(PROJECT["scripts"])


async def test_the_image_asks_for_its_health_where_it_is(monkeypatch):
    port = settings_of(image_environment(), monkeypatch).port
    asked = urlsplit(re.search(r"http://[^']+", instructions("HEALTHCHECK")[0]).group())
    async with roomlore.open("sqlite://", background=False) as lore:
        paths = create_app(lore).openapi()["paths"]
    assert (asked.hostname, asked.port) == ("127.0.0.1", port)
    assert "get" in paths[asked.path]


def parses(arguments: list[str]) -> None:
    """Fails where there is no such command or option."""
    group = typer.main.get_command(app)
    name, command, rest = group.resolve_command(typer.Context(group), list(arguments))
    command.make_context(name, rest)


@pytest.mark.parametrize("arguments", [["fly"], ["serve", "--fast"]], ids=" ".join)
def test_a_command_that_is_not_there_would_be_noticed(arguments):
    with pytest.raises(Exception, match=r"No such|unexpected") as refused:
        parses(arguments)
    assert refused.type.__name__ in ("UsageError", "NoSuchOption", "NoSuchCommand")


def test_the_image_starts_a_command_that_is_there():
    parses(json.loads(instructions("CMD")[-1]))


# The compose file.


def test_everything_has_its_service():
    assert set(SERVICES) == {"server", "worker", "postgres", "redis", "qdrant"}
    assert OURS == ["server", "worker"]


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_ours_has_settings_that_hold(monkeypatch, name):
    service = SERVICES[name]
    settings = settings_of({**image_environment(), **example(), **service["environment"]}, monkeypatch)
    for url in (settings.database_url, settings.redis_url, settings.qdrant_url):
        assert urlsplit(url).hostname in SERVICES
        assert urlsplit(url).hostname in service["depends_on"]
    assert settings.work_in_server is False
    assert settings.durable_work == "dbos"
    parses(service["command"])


@pytest.mark.parametrize("name", OURS)
def test_a_service_of_ours_may_do_little(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_the_server_alone_can_be_reached_and_from_this_machine_only(monkeypatch):
    port = settings_of(image_environment(), monkeypatch).port
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
        "server": [f"127.0.0.1:{port}:{port}"]
    }


@pytest.mark.parametrize("name", SERVICES)
def test_who_waits_for_a_service_waits_for_its_health(name):
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert how == {"condition": "service_healthy"}
        assert SERVICES[other]["healthcheck"]["test"]


def test_what_is_not_ours_has_a_version_and_data_has_a_volume():
    for name in set(SERVICES) - set(OURS):
        assert re.search(r":v?\d+\.\d+", SERVICES[name]["image"]), name
    mounted = {mount.partition(":")[0] for service in SERVICES.values() for mount in service.get("volumes", ())}
    assert mounted == set(COMPOSE["volumes"]) == {"postgres", "qdrant"}


# One container.


def test_one_container_is_enough_with_settings_that_hold(monkeypatch):
    (service,) = ONE["services"].values()
    settings = settings_of({**image_environment(), **service["environment"]}, monkeypatch)
    monkeypatch.setenv("TZ", service["environment"]["TZ"])
    assert settings.search.zone.key == "Asia/Shanghai"
    assert settings.embeddings == "offline"
    assert settings.work_in_server
    assert settings.database_url.removeprefix("sqlite:///").startswith(service["volumes"][0].partition(":")[2])
    assert [mount.partition(":")[0] for mount in service["volumes"]] == list(ONE["volumes"])
    assert service["ports"] == [f"127.0.0.1:{settings.port}:{settings.port}"]


def test_the_one_container_may_do_little():
    (service,) = ONE["services"].values()
    (other,) = {json.dumps([SERVICES[name][key] for key in _LITTLE]) for name in OURS}
    assert json.dumps([service[key] for key in _LITTLE]) == other


def test_the_one_container_names_keys_that_are_known_and_holds_none():
    (service,) = ONE["services"].values()
    keys = {name: value for name, value in service["environment"].items() if name.endswith("_API_KEY")}
    assert set(keys) <= {provider.key_variable for provider in KNOWN_PROVIDERS.values()}
    assert set(keys.values()) == {""}


_LITTLE = ("read_only", "cap_drop", "security_opt", "restart", "logging", "tmpfs")


def test_no_secret_stands_in_the_files():
    values = [
        f"{key}={value}"
        for service in SERVICES.values()
        for key, value in service.get("environment", {}).items()
        if re.search(r"PASSWORD|API_KEY|URL", key)
    ]
    assert len(values) >= 8
    for value in values:
        assert "${" in value or not re.search(r"PASSWORD|API_KEY|://[^/]*:[^/]*@", value), value
    for name, value in example().items():
        assert not value or name.startswith(PREFIX), name


def test_the_example_names_what_is_used_and_nothing_else():
    asked = set(re.findall(r"\$\{([A-Z_]+):\?", json.dumps(COMPOSE)))
    providers = {provider.key_variable for provider in KNOWN_PROVIDERS.values() if provider.key_variable}
    settings = {f"{PREFIX}{name.upper()}" for name in known_fields()}
    named = set(example())
    assert asked <= named
    assert named - asked - providers <= settings
    assert providers <= named


def test_the_versions_asked_of_services_are_those_that_clients_take():
    """The client of Qdrant may be one minor version from its server."""
    server = [int(part) for part in re.search(r"v(\d+)\.(\d+)", SERVICES["qdrant"]["image"]).groups()]
    client = [int(part) for part in version("qdrant-client").split(".")[:2]]
    assert server[0] == client[0]
    assert abs(server[1] - client[1]) <= 1
