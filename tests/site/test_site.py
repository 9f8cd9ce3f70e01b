"""The documentation as a site: built without a warning, without a network, and with nothing from elsewhere in it."""

import json
import os
import posixpath
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from docsite import reference
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
MADE = {f"reference/{name}": text for name, text in reference.pages().items()}
TOP = ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("link", "href")}
COUNTED = ("h1", "h2", "h3", "li", "tr", "td", "blockquote", "strong", "em")

NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")


def build(config: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """MkDocs, in a process without programs beside it and without a way out."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(into),
    ]
    environment = {
        "PATH": "",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "NO_MKDOCS_2_WARNING": "1",
        "HOME": os.environ.get("HOME", "/"),
        **NO_NETWORK,
    }
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    into = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", into)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return into


@dataclass
class Seen(HTMLParser):
    """The checked parts of a page: what it loads, where its links lead, its ids, how often each tag comes."""

    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attrs:
            if (tag, name) in LOADED and value:
                self.loads.append(value)
            if (tag, name) == ("a", "href") and value:
                self.links.append(value)
            if name == "id" and value:
                self.ids.add(value)


def seen(html: str) -> Seen:
    page = Seen()
    page.feed(html)
    return page


@pytest.fixture(scope="module")
def pages(site) -> dict[str, Seen]:
    """Every page of the site by its path; the one for what is not found has links from the top of a server."""
    return {
        path.relative_to(site).as_posix(): seen(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
        if path.name != "404.html"
    }


def place(page: str) -> str:
    """Return the path that the site has for a page of docs/."""
    folder, name = posixpath.split(page.removesuffix(".md"))
    return posixpath.join(folder, "" if name in ("README", "index") else name, "index.html")


def article(html: str) -> str:
    return re.sub(r"<aside.*?</aside>", "", re.search(r"<article.*?</article>", html, re.S).group(), flags=re.S)


def test_every_page_is_there_and_in_the_navigation(pages):
    led_to = {posixpath.normpath(posixpath.join(".", link)) for link in pages["index.html"].links}
    for page in (*map(place, PAGES), *(f"project/{name.lower()}/index.html" for name in TOP)):
        assert page in pages
        assert posixpath.dirname(page) in led_to or page == "index.html", f"{page} is not in the navigation"


def test_every_link_and_anchor_leads_somewhere(site, pages):
    broken = []
    for page, found in pages.items():
        for link in found.links:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(path))) if path else page
            if not target.endswith(".html") and (site / target).is_dir():
                target = posixpath.normpath(posixpath.join(target, "index.html"))
            known = pages.get(target)
            if not (site / target).is_file() or (anchor and known and unquote(anchor) not in known.ids):
                broken.append((page, link))
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site, pages):
    loaded = {load for found in pages.values() for load in found.loads}
    assert loaded
    assert [load for load in loaded if re.match(r"(?:[a-z]+:)?//", load)] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert styles
    assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)'\"]*", styles) == []


def test_the_files_beside_docs_are_there_as_they_are(site, pages):
    assert (site / "project/files/NOTICE").read_bytes() == (ROOT / "NOTICE").read_bytes()
    assert "../how-to/search/" in {link.removeprefix("../") for link in pages["project/readme/index.html"].links}
    prompts = list(site.glob("project/files/src/roomlore/prompts/*/index.html"))
    assert prompts
    for path in prompts:
        source = (ROOT / path.parent.relative_to(site / "project/files")).read_text(encoding="utf-8")
        shown = re.sub(r"<[^>]+>", "", article(path.read_text(encoding="utf-8")))
        assert source.split()[0] in shown


def test_both_languages_are_there_and_can_be_searched(site):
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    assert index["config"]["lang"] == ["en", "zh"]
    words = {word for entry in index["docs"] for word in re.split(index["config"]["separator"], entry["text"])}
    assert {"记忆", "聊天", "evolution"} <= words
    for page, language in (("README.zh", "zh"), ("quickstart.zh", "zh"), ("quickstart", "en")):
        html = (site / page / "index.html").read_text(encoding="utf-8")
        assert f'<html lang="{language}"' in html
        assert 'hreflang="zh"' in html
        assert 'rel="alternate"' not in html, "the theme asks for a sitemap beside each"


@pytest.mark.parametrize("page", PAGES)
def test_the_site_shows_what_a_git_host_shows(page, site):
    """Two Markdowns: lists, tables and emphasis are the same in both, but for what is made when the site is."""
    text = MADE.get(page) or (ROOT / "docs" / page).read_text(encoding="utf-8")
    hosted = seen(MarkdownIt("commonmark").enable("table").render(text))
    shown = seen(article((site / place(page)).read_text(encoding="utf-8")))
    assert [shown.counts.get(tag, 0) for tag in COUNTED] == [hosted.counts.get(tag, 0) for tag in COUNTED]


def test_a_broken_link_an_unknown_anchor_and_a_hidden_page_end_the_build(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Home\n\n[gone](gone.md) [nowhere](#nowhere)\n", encoding="utf-8")
    (docs / "hidden.md").write_text("# Hidden\n", encoding="utf-8")
    lines = (
        f"INHERIT: {ROOT / 'mkdocs.yml'}",
        f"docs_dir: {docs}",
        f"hooks: ['{ROOT / 'docsite' / 'neighbours.py'}']",
        "watch: []",
        "nav: [index.md]",
    )
    (tmp_path / "mkdocs.yml").write_text("\n".join(lines), encoding="utf-8")
    for name in TOP:
        (tmp_path / f"{name}.md").write_text("# Top\n\n[home](docs/index.md)\n", encoding="utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    for told in ("'gone.md'", "'#nowhere'", "hidden.md"):
        assert told in done.stderr
    assert done.stderr.count("WARNING") == 3
