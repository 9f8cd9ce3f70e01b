"""Content of attachments at a local server, in a folder and in its own address: what is read, and what never is."""

import asyncio
import os

import pytest

from attachment_rig import INLINE, PICTURE, FileServer
from roomlore.adapters import attached
from roomlore.adapters.attached import AttachedFiles
from roomlore.core.attachments import Attachment
from roomlore.core.errors import InvalidInput, Unavailable
from roomlore_testkit.case_table import all_cases

MOST = 1_000


@pytest.fixture
async def files():
    pages = {
        "/a.png?k=v": PICTURE, "/there": (302, "/a.png?k=v"), "/round": (302, "/round"), "/long": b"x" * (MOST + 1),
        "/to-file": (302, "file:///etc/passwd"), "/nowhere": (304, ""), "/empty": b"",
        **{f"/{status}": status for status in (403, 404, 410, 429, 500, 503)},
    }  # fmt: skip
    async with FileServer(pages) as server:
        yield server


def reader(**more) -> AttachedFiles:
    return AttachedFiles(**({"folder": None, "private": True, "most": MOST} | more))


async def refusal(kind, attachment, tenant="default", **more) -> str:
    with pytest.raises(kind) as caught:
        await reader(**more).read(tenant, attachment)
    assert type(caught.value) is kind
    return caught.value.code


async def test_what_stands_at_an_address_is_read_and_redirects_are_followed(files):
    for path in ("/a.png?k=v", "/there"):
        assert await reader().read("default", Attachment(url=files.url + path)) == PICTURE
    assert await reader().read("default", Attachment(url=f"{files.url}/empty")) == b""
    named = files.url.replace("127.0.0.1", "localhost")
    assert await reader().read("default", Attachment(url=f"{named}/there")) == PICTURE
    assert f"Host: {named.removeprefix('http://')}" in files.heads[-1]
    assert not any(name in head.lower() for head in files.heads for name in ("cookie", "authorization", "referer"))


async def test_what_a_server_answers_is_told_apart(files):
    with all_cases() as case:
        for path, kind, code in (
            ("/404", InvalidInput, "attachment_refused"), ("/403", InvalidInput, "attachment_refused"),
            ("/410", InvalidInput, "attachment_refused"), ("/nowhere", InvalidInput, "attachment_refused"),
            ("/429", Unavailable, "attachment_refused"), ("/500", Unavailable, "attachment_refused"),
            ("/503", Unavailable, "attachment_refused"), ("/long", InvalidInput, "attachment_too_long"),
            ("/round", InvalidInput, "attachment_redirects"), ("/to-file", InvalidInput, "attachment_address_invalid"),
        ):  # fmt: skip
            with case(path):
                assert await refusal(kind, Attachment(url=files.url + path)) == code
    await files.stop()
    assert await refusal(Unavailable, Attachment(url=f"{files.url}/a.png")) == "attachment_unreachable"


async def test_private_addresses_are_refused_also_behind_a_redirect(files, monkeypatch):
    port = files.url.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1"):
        refused = Attachment(url=f"http://{host}:{port}/a.png")
        assert await refusal(InvalidInput, refused, private=False) == "attachment_address_private"
    assert files.asked == []

    def check(host, addresses, *, refusal):
        if host == "localhost":
            raise InvalidInput(refusal, host=host)

    monkeypatch.setattr(attached, "check_public", check)
    files.pages["/inside"] = (302, f"http://localhost:{port}/a.png?k=v")
    refused = Attachment(url=f"{files.url}/inside")
    assert await refusal(InvalidInput, refused, private=False) == "attachment_address_private"
    assert files.asked == ["/inside"]


async def test_a_slow_server_is_left(files, monkeypatch):
    monkeypatch.setattr(attached, "SECONDS", 0.05)

    async def never(*_):
        await asyncio.sleep(5)

    monkeypatch.setattr(files, "_answer_one", never)
    assert await refusal(Unavailable, Attachment(url=f"{files.url}/a.png")) == "attachment_unreachable"


async def test_other_addresses():
    assert await reader().read("default", Attachment(url=INLINE)) == PICTURE
    assert await reader().read("default", Attachment(url="DATA:text/plain,a%20b")) == b"a b"
    with all_cases() as case:
        for url, code in (
            ("ftp://example.org/a.png", "attachment_address_invalid"), ("http://", "attachment_address_invalid"),
            ("http://ann:secret@example.org/a", "attachment_address_invalid"), ("a.png", "attachment_address_invalid"),
            (f"http://{'a' * 80}/a", "attachment_address_invalid"), ("", "attachment_address_invalid"),
            ("data:image/png;base64,???", "attachment_address_invalid"),
            ("data:text/plain," + "x" * (MOST + 1), "attachment_too_long"),
        ):  # fmt: skip
            with case(url[:60]):
                assert await refusal(InvalidInput, Attachment(url=url)) == code


async def test_files_are_read_below_the_folder_alone(tmp_path):
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.png").write_bytes(PICTURE)
    (folder / "long").write_bytes(b"x" * (MOST + 1))
    (tmp_path / "out").write_bytes(b"secret")
    (folder / "link").symlink_to(tmp_path / "out")
    os.mkfifo(folder / "pipe")
    attachment = Attachment(file="deep/../deep/a.png", url="http://10.0.0.1/")
    assert await reader(folder=folder).read("default", attachment) == PICTURE
    with all_cases() as case:
        for name, code in (
            ("../out", "attachment_file_missing"), (str(tmp_path / "out"), "attachment_file_missing"),
            ("link", "attachment_file_missing"), ("none", "attachment_file_missing"), (".", "attachment_file_missing"),
            ("pipe", "attachment_file_missing"), ("a\0b", "attachment_address_invalid"),
            ("\ud800", "attachment_address_invalid"), ("long", "attachment_too_long"),
        ):  # fmt: skip
            with case(name):
                assert await refusal(InvalidInput, Attachment(file=name), folder=folder) == code


async def test_a_tenant_reads_its_own_files_alone(tmp_path):
    for place in ("own.png", "acme/a.png", "tenants/acme/a.png", "tenants/zhou/z.png", "tenants/default/d.png"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(PICTURE)
    for tenant, name in (("default", "own.png"), ("default", "acme/a.png"), ("acme", "a.png"), ("zhou", "z.png")):
        assert await reader(folder=tmp_path).read(tenant, Attachment(file=name)) == PICTURE
    with all_cases() as case:
        for tenant, name in (
            ("acme", "own.png"), ("acme", "../zhou/z.png"), ("acme", "../../own.png"), ("zhou", "a.png"),
            ("default", "tenants/acme/a.png"), ("default", "Tenants/../tenants/acme/a.png"),
            ("default", "acme/../tenants/acme/a.png"), ("default", str(tmp_path / "tenants/acme/a.png")),
            ("..", "own.png"), (".", "acme/a.png"), ("../acme", "a.png"), ("zhou/../acme", "a.png"),
            ("acme/", "a.png"), ("/", "etc/hostname"), (str(tmp_path), "own.png"), ("nobody", "a.png"),
        ):  # fmt: skip
            with case(f"{tenant} {name}"):
                refused = await refusal(InvalidInput, Attachment(file=name), tenant, folder=tmp_path)
                assert refused == "attachment_file_missing"
