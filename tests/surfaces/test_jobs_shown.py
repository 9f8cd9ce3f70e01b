"""Durable work over HTTP, in the terminal and without async: what is shown, retried and counted, and whose it is."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

import roomlore
from extraction_rig import CHINESE, replies, settings
from roomlore.adapters.dbos import open_dbos
from roomlore.ports.durable import work_name
from roomlore.surfaces.cli.app import app as commands
from roomlore_testkit.model_server import ModelServer, Says

SHOWN = {"job_id", "kind", "room_id", "status", "attempts", "progress", "error", "created_at", "updated_at"}


async def fails(steps, arguments):
    raise roomlore.ModelUnavailable("没有模型回答 \x1b[31m")


async def hand_in(
    durable, own: str = "x1", *, tenant: str = "default", kind: str = "dreaming", room: str = "茶"
) -> None:
    name = work_name(tenant, kind, own)
    await durable.start(
        kind, work_id=name, partition=name, arguments={"tenant": tenant, "room_id": room, "q": "vault code"}
    )


# HTTP, where the work is kept in this process.


@pytest.fixture
async def failed(lore):
    """The id of a job that failed."""
    durable = lore._resources.durable
    durable.define("dreaming", fails)
    await durable.open(working=True)
    durable._opened._pauses = (0.01,)
    await hand_in(durable)
    job = await lore.jobs.wait("dreaming:x1", 20)
    assert job.status == "failed"
    return job.job_id


async def test_jobs_over_http(http, failed, lore):
    (shown,) = (await http.get("/jobs")).json()["jobs"]
    assert set(shown) == SHOWN
    assert (shown["kind"], shown["room_id"], shown["status"], shown["attempts"]) == ("dreaming", "茶", "failed", 2)
    assert shown["error"] == "ModelUnavailable: 没有模型回答 \x1b[31m"
    assert (await http.get(f"/jobs/{failed}")).json() == shown
    assert (await http.get("/jobs/dreaming%3Ax1")).json() == shown
    lore._resources.durable._opened._pauses = (60,)
    again = await http.post(f"/jobs/{failed}/retry")
    assert (again.status_code, again.json()["status"]) == (200, "waiting")
    refused = await http.post(f"/jobs/{failed}/retry")
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:roomlore:conflict")
    told = (await http.get("/metrics")).text
    assert 'roomlore_work_total{kind="dreaming",result="retried"} 1.0' in told
    assert "vault code" not in str(shown) + told


async def test_pages_of_jobs_over_http(http, lore):
    for number in range(5):
        await hand_in(lore._resources.durable, str(number))
    first = (await http.get("/jobs?limit=3")).json()
    assert (len(first["jobs"]), first["next"]) == (3, 3)
    second = (await http.get("/jobs?limit=3&after=3&status=waiting&kind=dreaming")).json()
    assert (len(second["jobs"]), second["next"]) == (2, None)
    assert not {job["job_id"] for job in first["jobs"]} & {job["job_id"] for job in second["jobs"]}
    assert (await http.get(f"/jobs?after={2**63 - 1}&limit=1")).json() == {"jobs": [], "next": None}


async def test_what_no_page_of_jobs_can_be(http):
    for query in ("status=lost", "status=", "kind=%00", "kind=", "after=-1", "limit=0", "limit=201"):
        assert (await http.get(f"/jobs?{query}")).status_code == 422, query


async def test_a_job_that_there_is_not(http, failed):
    for name in ("nix", "%00", "dreaming:x2", "default:dreaming:x1", "%F0%9F%A5%9C", "%25"):
        for answer in (await http.get(f"/jobs/{name}"), await http.post(f"/jobs/{name}/retry")):
            assert (answer.status_code, answer.json()["type"]) == (404, "urn:roomlore:not-found")


async def test_the_jobs_of_another_tenant_do_not_exist(lore, connect, failed):
    _, key = await lore.for_tenant("Default").keys.create("theirs", scopes=("admin",))
    async with connect(key=key) as client:
        assert (await client.get("/jobs")).json() == {"jobs": [], "next": None}
        assert (await client.get(f"/jobs/{failed}")).status_code == 404
        assert (await client.post(f"/jobs/{failed}/retry")).status_code == 404
    assert (await lore.jobs.get(failed)).status == "failed"


async def test_a_server_that_does_not_work_looks_and_hands_in(tmp_path):
    from roomlore_server.http import create_app

    here = roomlore.Settings(database_url=f"sqlite:///{tmp_path / 'a.db'}", work_in_server=False)
    app = create_app(here)
    async with app.router.lifespan_context(app):
        lore = app.state.lore
        await replies(lore, CHINESE, 5)
        assert await lore.jobs.page() == []
        await hand_in(lore._resources.durable)
        assert [job.status for job in await lore.jobs.page()] == ["waiting"]
        assert not await lore.jobs.works_here()


# The terminal, where the work is kept beside the database.


def run(*arguments: str, code: int = 0):
    result = CliRunner().invoke(commands, ["--db", "a.db", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


async def make_database() -> None:
    async with roomlore.open("a.db", background=False):
        """It is empty."""


@pytest.fixture
async def kept():
    """A database with a job that failed and one that waits."""
    await make_database()
    work = open_dbos("a.db", pauses_seconds=(0.02,), poll_seconds=0.05)
    work.define("dreaming", fails)
    await work.open(working=True)
    await hand_in(work)
    await work.wait(work_name("default", "dreaming", "x1"), seconds=20)
    await work.close()
    await work.open(working=False)
    await hand_in(work, "x2", kind="extraction")
    await hand_in(work, "x3", tenant="acme")
    await work.close()


def test_jobs_in_the_terminal(kept):
    listed = run("jobs")
    assert [line.split()[:4] for line in listed.splitlines()[1:]] == [
        ["extraction:x2", "茶", "waiting", "0"],
        ["dreaming:x1", "茶", "failed", "2"],
    ]
    assert "没有模型回答 \ufffd[31m" in listed
    assert "x3" not in listed
    assert "x2" not in run("jobs", "--status", "failed")
    assert "x1" not in run("jobs", "--kind", "extraction")
    assert len(json.loads(run("jobs", "--json", "-n", "1"))) == 1
    assert run("jobs", "--status", "running") == "No jobs.\n"
    assert "x3" in run("--tenant", "acme", "jobs")


def test_the_id_of_a_job_is_never_broken():
    async def one_waits() -> None:
        await make_database()
        work = open_dbos("a.db")
        await work.open(working=False)
        await hand_in(work, "y" * 33, kind="extraction_again", room="a long name " * 4)
        await work.close()

    asyncio.run(one_waits())
    assert f"extraction_again:{'y' * 33}" in run("jobs").split()


def test_one_job_in_the_terminal(kept):
    told = run("jobs", "show", "dreaming:x1")
    assert "status      failed" in told
    assert "progress" not in told, "what it has nothing to say of is left out"
    (shown,) = [json.loads(run("jobs", "show", "dreaming:x1", "--json"))]
    assert set(shown) == SHOWN
    assert "status      waiting" in run("jobs", "retry", "dreaming:x1")
    assert "is waiting; only one that failed" in run("jobs", "retry", "dreaming:x1", code=1)
    assert "There is no job 'dreaming:x3'" in run("jobs", "show", "dreaming:x3", code=1)


def test_work_that_no_other_process_sees(monkeypatch):
    asyncio.run(make_database())
    monkeypatch.setenv("MEMORY_DURABLE_WORK", "process")
    for command in (["jobs"], ["jobs", "show", "x"], ["jobs", "retry", "x"]):
        assert "pip install 'roomlore[durable]'" in run(*command, code=1)


# The library, for who opens it without work behind the calls.


@pytest.mark.parametrize("durable_work", ["process", "auto"])
async def test_catching_up_with_short_memories(tmp_path, durable_work):
    async with ModelServer(default=Says(text=CHINESE.summary)) as server:
        given = settings(server, seconds=15, durable_work=durable_work)
        url = f"sqlite:///{tmp_path / 'a.db'}"
        async with roomlore.open(url, settings=given, background=False) as lore:
            await replies(lore, CHINESE, 10)
            await replies(lore.for_tenant("acme"), CHINESE, 5)
            assert await lore.memories.page("agent:bot") == []
            assert await lore.jobs.catch_up(seconds=60) == 3
            assert len(server.requests) == 3
            assert len(await lore.memories.page("agent:bot")) == 2
            assert [(job.kind, job.room_id, job.status) for job in await lore.jobs.page()] == [
                ("extraction", "r", "done")
            ] * 2
            assert await lore.jobs.catch_up(seconds=60) == 0
            assert b'roomlore_work_total{kind="extraction",result="done"} 3.0' in lore.prometheus()


def test_catching_up_without_async(tmp_path):
    with roomlore.open_sync(f"sqlite:///{tmp_path / 'a.db'}", background=False) as lore:
        assert lore.jobs.page() == []
        assert lore.jobs.catch_up(seconds=5) == 0
        assert lore.jobs.works_here()
    with pytest.raises(roomlore.Unavailable):
        lore.jobs.page()
