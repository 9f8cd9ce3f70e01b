"""`roomlore doctor` on real troubles: what is down, rubbish, missing, locked, read-only, newer."""

import json
import re
import sqlite3
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roomlore
from qdrant_stand_in import QdrantStandIn
from roomlore.adapters.weights import load_link_model
from roomlore.settings import Settings
from roomlore.storage.migrations import HEAD
from roomlore.surfaces.cli.app import app
from roomlore.wiring import diagnose, extras
from roomlore_testkit.model_server import Fails, ModelServer, serve_models
from tuned import tuned

KEY = "sk-secret-0123456789"
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
PATIENT = 60.0
NOWHERE = "127.0.0.1:9"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("OPENROUTER_API_KEY", "SILICONFLOW_API_KEY", "OPENAI_API_KEY", "NEAR_KEY"):
        monkeypatch.delenv(name, raising=False)


async def found(**settings):
    findings = await diagnose(Settings(**{"database_url": "chat.db", **settings}), timeout_seconds=PATIENT)
    return {finding.part: finding for finding in findings}


def run(*arguments: str, code: int = 0):
    result = CliRunner().invoke(app, ["--db", "chat.db", "doctor", "--timeout", str(PATIENT), *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def sound(finding) -> bool:
    """On a busy machine what goes well may be slow."""
    return finding.verdict == "ok" or (finding.verdict == "warn" and "slow" in finding.advice)


def configure(**settings) -> None:
    Path("roomlore.yaml").write_text(json.dumps({"memory": settings}, ensure_ascii=False), encoding="utf-8")


async def make_database(url="chat.db"):
    async with roomlore.open(url, background=False):
        pass


def change(statement: str) -> None:
    connection = sqlite3.connect("chat.db")
    connection.execute(statement)
    connection.commit()
    connection.close()


# The command.


def test_a_new_folder_is_told_what_comes_and_nothing_is_made():
    told = run()
    assert "It is new" in told.stdout
    assert "no language model is configured" in " ".join(told.stdout.split())
    assert "DASHSCOPE_API_KEY" in told.stdout
    assert told.stdout.startswith("It works. Worth a look:\n")
    assert re.search(r"^\d+ checks passed\. Not set up: .*redis", told.stdout, re.MULTILINE)
    assert not re.search("^(ok|off +redis)", told.stdout, re.MULTILINE)
    assert len(re.findall("^(?:ok|off) ", run("--all").stdout, re.MULTILINE)) > 8
    assert list(Path().iterdir()) == []


def test_as_json_with_the_exit_status(monkeypatch):
    sound = json.loads(run("--json").stdout)
    assert sound["verdict"] == "warn"
    assert [one["part"] for one in sound["findings"]][:3] == ["settings", "extras", "database"]
    monkeypatch.setenv("MEMORY_REDIS_URL", f"redis://:{KEY}@{NOWHERE}")
    broken = run("--json", code=1).stdout
    assert json.loads(broken)["verdict"] == "fail"
    assert KEY not in broken


def test_models_are_asked_only_where_told_to(monkeypatch):
    monkeypatch.setenv("NEAR_KEY", KEY)
    with serve_models(default="准备好了 ready") as near, serve_models(default=Fails(status=401)) as far:
        models = {"聊天": {"providers": [{"name": "near", "model_id": "m"}, {"name": "far", "model_id": "n"}]}}
        providers = {"near": {"base_url": near.url, "key_variable": "NEAR_KEY"}, "far": {"base_url": far.url}}
        configure(models=models, providers=providers)
        run()
        assert {asked.path for asked in near.requests} == {"/v1/models"}
        told = json.loads(run("--ask", "--json").stdout)
    trials = [one for one in told["findings"] if one["part"] == "model 聊天"]
    assert [one["verdict"] for one in trials] == ["ok", "warn"]
    assert KEY not in json.dumps(told)


# The database.


async def test_a_sound_database():
    await make_database()
    database = (await found())["database"]
    assert sound(database)
    assert f"SQLite, schema {HEAD}" in database.told


@pytest.mark.parametrize("version", ["0001", "9999"])
async def test_a_schema_of_another_version_is_left_as_it_is(version):
    await make_database()
    change(f"UPDATE alembic_version SET version_num = '{version}'")
    assert (await found())["database"].verdict == "fail"
    assert sqlite3.connect("chat.db").execute("SELECT version_num FROM alembic_version").fetchone() == (version,)


_STAMP = "CREATE TABLE alembic_version (version_num TEXT)"


@pytest.mark.parametrize(
    ("statements", "verdict", "says"),
    [
        (["CREATE TABLE orders (id)"], "warn", "tables of another program: orders; none of roomlore"),
        (["CREATE TABLE orders (id)", "CREATE TABLE Rooms (id)"], "fail", "called as roomlore's own: Rooms;"),
        ([_STAMP], "fail", "called as roomlore's own: alembic_version;"),
        ([_STAMP, "INSERT INTO alembic_version VALUES ('ae1027a6acf1')"], "fail", "called as roomlore's own: alembic"),
        (["CREATE TABLE a (id)", "DROP TABLE a"], "warn", "schema none yet"),
    ],
)
async def test_the_tables_of_another_program(statements, verdict, says):
    for statement in statements:
        change(statement)
    database = (await found())["database"]
    assert (database.verdict, says in database.told) == (verdict, True), database.told
    if verdict == "fail":
        with pytest.raises(roomlore.StorageUnavailable, match="Another program has tables"):
            await make_database()
    else:
        await make_database()
        assert sound((await found())["database"])


async def test_a_database_that_may_only_be_read():
    await make_database()
    database = (await found(database_url="sqlite:///file:chat.db?mode=ro&uri=true"))["database"]
    assert database.verdict == "fail"
    assert "readonly" in database.told


async def test_a_database_that_another_program_holds():
    await make_database()
    holder = sqlite3.connect("chat.db")
    holder.execute("BEGIN IMMEDIATE")
    database = (await found())["database"]
    holder.close()
    assert database.verdict == "fail"
    assert "Another program holds its write lock" in database.told


async def filled() -> None:
    async with roomlore.open("chat.db", background=False) as lore:
        said = [roomlore.Message(id=f"m{n}", room_id="tea", sender_id="ann", text=f"第 {n} word") for n in range(400)]
        await lore.messages.add(said)


def overwrite(table: str) -> None:
    """Spoil the first page of a table."""
    place = sqlite3.connect("chat.db").execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
    (page,), whole = place.fetchone(), Path("chat.db").read_bytes()
    size = int.from_bytes(whole[16:18], "big")
    at = (page - 1) * size
    Path("chat.db").write_bytes(whole[:at] + b"\xff" * size + whole[at + size :])


async def test_a_database_with_overwritten_pages():
    await filled()
    assert (await found())["integrity"].verdict == "ok"
    overwrite("messages")
    integrity = (await found())["integrity"]
    assert integrity.verdict == "fail"
    assert "backup" in integrity.advice


async def test_an_index_that_does_not_fit_its_table_is_found_by_a_thorough_look():
    await make_database()
    for statement in (
        "CREATE TABLE tea (leaf, water)",
        "CREATE INDEX by_leaf ON tea (leaf)",
        "INSERT INTO tea VALUES (1, 2), (3, 4)",
    ):
        change(statement)
    with sqlite3.connect("chat.db") as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = 'CREATE INDEX by_leaf ON tea (water)' WHERE name = 'by_leaf'"
        )
    found = [
        await diagnose(Settings(database_url="chat.db"), integrity=how, timeout_seconds=PATIENT)
        for how in ("quick", "thorough")
    ]
    assert [{one.part: one.verdict for one in findings}["integrity"] for findings in found] == ["ok", "fail"]


async def test_pages_are_not_read_where_nobody_waits_for_it():
    await make_database()
    async with roomlore.open("chat.db", background=False) as lore:
        assert "integrity" not in {one.part for one in await lore.examine(timeout_seconds=PATIENT)}


def test_what_is_no_database():
    Path("chat.db").write_bytes("这不是数据库 no database".encode() * 100)
    told = json.loads(run("--json", code=1).stdout)
    database = next(one for one in told["findings"] if one["part"] == "database")
    assert (database["verdict"], "no roomlore database" in database["told"]) == ("fail", True)


async def test_a_folder_that_is_not_there():
    database = (await found(database_url="nowhere/chat.db"))["database"]
    assert (database.verdict, "is missing" in database.told) == ("fail", True)


async def test_a_database_in_memory():
    assert (await found(database_url="sqlite://"))["database"].verdict == "warn"


async def test_postgresql_with_its_clock(postgres_url):
    parts = await found(database_url=postgres_url)
    assert sound(parts["database"])
    assert "PostgreSQL" in parts["database"].told
    assert parts["clock"].verdict == "ok"


async def test_postgresql_that_is_empty_or_away(empty_postgres):
    assert (await found(database_url=empty_postgres))["database"].verdict == "warn"
    away = await found(database_url=f"postgresql://ann:{KEY}@{NOWHERE}/x")
    assert away["database"].verdict == "fail"
    assert KEY not in str(away)


async def test_pgvector_on_sqlite():
    await make_database()
    assert (await found(vectors="pgvector"))["vectors"].verdict == "fail"


async def test_a_public_address_without_a_key():
    await make_database()
    assert (await found(host="0.0.0.0"))["keys"].verdict == "fail"
    async with roomlore.open("chat.db", background=False) as lore:
        await lore.keys.create("bot")
    assert "keys" not in await found(host="0.0.0.0")


# What is outside.


async def test_redis_that_answers_is_away_or_still(redis_server):
    url = redis_server.url
    with tuned(redis_timeout_seconds=PATIENT):
        assert sound((await found(redis_url=url))["redis"])
    redis_server.pause()
    still = (await found(redis_url=url))["redis"]
    redis_server.kill()
    away = (await found(redis_url=url))["redis"]
    assert (still.verdict, away.verdict) == ("fail", "fail")
    assert "did not answer in time" in still.told
    assert "could not be reached" in away.told


@pytest.mark.parametrize("fault", ["error", "html", "garbage", "wrong"])
async def test_qdrant_that_answers_rubbish(fault, monkeypatch):
    monkeypatch.setattr("roomlore.adapters.qdrant.TIMEOUT_SECONDS", PATIENT)
    async with ModelServer() as embedder, QdrantStandIn() as qdrant:
        qdrant.fault = fault
        parts = await found(embeddings="openai", embedding_url=embedder.url, qdrant_url=qdrant.url)
    assert parts["qdrant"].verdict == "fail"
    assert "Qdrant" in parts["qdrant"].told
    assert parts["embedder"].verdict == "fail"


async def test_qdrant_that_is_empty_and_one_that_nobody_uses(monkeypatch):
    monkeypatch.setattr("roomlore.adapters.qdrant.TIMEOUT_SECONDS", PATIENT)
    async with QdrantStandIn() as qdrant:
        unused = (await found(qdrant_url=qdrant.url))["qdrant"]
        used = (await found(embeddings="openai", embedding_url=f"http://{NOWHERE}/v1", qdrant_url=qdrant.url))["qdrant"]
    assert (unused.verdict, "embeddings is off" in unused.told) == ("warn", True)
    assert "holds no messages yet" in used.told


@pytest.mark.parametrize(
    ("key", "base_url", "verdict", "says"),
    [
        ("", "", "warn", "no key in NEAR_KEY"),
        (KEY, "", "ok", "NEAR_KEY is set"),
        (KEY, f"http://{NOWHERE}/v1", "fail", "cannot be reached"),
        ("密钥", "", "fail", "cannot be reached"),
    ],
    ids=["no key", "reachable", "away", "a key that cannot be sent"],
)
async def test_a_provider(monkeypatch, key, base_url, verdict, says):
    monkeypatch.setenv("NEAR_KEY", key)
    async with ModelServer() as server:
        near = {"base_url": base_url or server.url, "key_variable": "NEAR_KEY"}
        models = {"chat": {"providers": [{"name": "near", "model_id": "m"}]}}
        provider = (await found(models=models, providers={"near": near}))["provider near"]
    assert says in provider.told
    assert sound(provider) if verdict == "ok" else provider.verdict == verdict
    assert KEY not in str(provider)


async def test_of_the_providers_that_are_built_in_those_with_a_key_are_asked(monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    async with ModelServer() as server:
        findings = await found(providers={"deepseek": {"base_url": server.url}})
    assert "DEEPSEEK_API_KEY is set" in findings["provider deepseek"].told
    assert [part for part in findings if part.startswith("provider")] == ["provider deepseek"]


async def test_a_langfuse_that_is_away():
    keys = {"langfuse_public_key": "pk", "langfuse_secret_key": KEY}
    langfuse = (await found(langfuse_host=f"http://{NOWHERE}", **keys))["langfuse"]
    assert (langfuse.verdict, "does not answer" in langfuse.told) == ("fail", True)
    assert KEY not in str(langfuse)


# What is configured.


async def test_variables_that_are_no_settings(monkeypatch):
    monkeypatch.setenv("MEMORY_OF_SOMETHING_ELSE", "1")
    settings = (await found())["settings"]
    assert (settings.verdict, "MEMORY_OF_SOMETHING_ELSE" in settings.told) == ("warn", True)


async def test_an_extra_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    parts = await found(redis_url=f"redis://{NOWHERE}")
    assert (parts["extras"].verdict, parts["extras"].advice) == ("fail", "pip install 'roomlore[redis]'")
    assert (parts["redis"].verdict, "needs the extra" in parts["redis"].told) == ("fail", True)


async def test_an_extra_that_is_there_is_not_said_to_be_in_use():
    used, there = (
        (await found())["extras"].told.removeprefix("in use by these settings: ").split("; packages are there for: ")
    )
    assert "server" not in used
    assert "server" in there


async def test_the_form_of_the_linker(monkeypatch):
    kernel = load_link_model(compiled=True).kernel
    assert (await found())["linker"].told == f"compiled ({kernel.form})"
    assert (await found(link_kernel=False))["linker"].told == "in numpy, as link_kernel says"
    load_link_model.cache_clear()
    monkeypatch.setattr("roomlore_kernel.layout", lambda: "of another version")
    assert (await found())["linker"].verdict == "warn"
    load_link_model.cache_clear()
    monkeypatch.setitem(sys.modules, "roomlore_kernel", None)
    linker = (await found())["linker"]
    load_link_model.cache_clear()
    assert (linker.verdict, linker.told, "roomlore[kernel]" in linker.advice) == ("ok", "in numpy", True)


def test_every_extra_is_looked_for():
    declared = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras()) == set(declared) - {"all"}


@pytest.mark.parametrize(("cron", "says"), [(" ", "only when asked"), ("0 2 * * *", "02:00 (Asia/Shanghai)")])
async def test_the_schedule(cron, says):
    configure(evolve_schedule=cron)
    assert says in (await found(time_zone="Asia/Shanghai"))["schedule"].told


async def test_whether_models_read_attachments_is_told_and_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no model reads attachments" in (await found())["attachments"].told
    own = {"eyes": {"internal": True, "providers": [{"name": "near", "model_id": "v"}]}}
    near = {"base_url": "http://127.0.0.1:9", "key_variable": "NEAR_KEY"}
    given = {"models": own, "providers": {"near": near}, "caption_model": "eyes"}
    mute = (await found(**given))["attachments"]
    assert (mute.verdict, "eyes" in mute.told, "models --internal" in mute.advice) == ("fail", True, True)
    async with ModelServer() as server:
        given["providers"] = {"near": {"base_url": server.url}}
        assert (await found(**given))["attachments"].told == "models put attachments into words: picture"
        findings = await diagnose(Settings(database_url="chat.db", **given), ask=True, timeout_seconds=PATIENT)
        assert [finding.told for finding in findings if finding.part == "model eyes"] == ["near: answered"]
        shown = [asked for asked in server.requests if asked.path.endswith("completions")]
        assert any("image_url" in str(asked.body) for asked in shown)
        async with roomlore.open("chat.db", settings=Settings(**given), background=False) as lore:
            picture = {"attachments": [{"type": "picture", "url": "http://127.0.0.1:9/a.png"}]}
            await lore.messages.add(roomlore.Message(id="1", room_id="r", sender_id="a", text="", metadata=picture))
        findings = await diagnose(Settings(database_url="chat.db", **given), timeout_seconds=PATIENT)
        waits = next(finding for finding in findings if finding.part == "attachments")
        assert "wait" in waits.told
        assert "jobs --kind attachments" in waits.advice
    findings = await diagnose(Settings(database_url="chat.db", **given | {"providers": {"near": near}}))
    [mute] = [finding for finding in findings if finding.part == "attachments"]
    assert (mute.verdict, "has a key, so attachments wait" in mute.told) == ("fail", True)
    [none] = [finding for finding in findings if finding.part == "providers"]
    assert "NEAR_KEY" not in none.advice, "its model writes no memories"
    monkeypatch.setattr("roomlore.wiring.doctor.can_chat", lambda: False)
    monkeypatch.setattr("roomlore.wiring.work.can_chat", lambda: False)
    assert "pip install 'roomlore[openai]'" in (await found(**given))["attachments"].advice
    with pytest.raises(roomlore.InvalidInput, match="Models need the extra"):
        async with roomlore.open("chat.db", settings=Settings(**given)):
            pass
