"""An MkDocs hook: it fills the pages of the reference, and adds the files outside docs/ that pages link to.

A link such as `../../README.md` then works in a checkout, on a Git host and on the site. MkDocs knows a file by its
path from docs/, such as `../README.md`.
"""

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import rjieba
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext

from docsite.reference import pages

_BOOSTS = {"how-to/": 4.0, "quickstart": 4.0, "explanation/": 2.0, "../": 0.4, "decisions/": 0.5, "reference/": 0.2}
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_BETWEEN = "\u200b"
_SEARCH = 'data-md-component="search" role="dialog"'
_ALTERNATE = re.compile(r'<link rel="alternate"[^>]* hreflang=[^>]*>\s*')
_LINK = re.compile(r"(?<=\]\()[^)#:\s]+(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Fill the pages of the reference. Add the pages of the top folder, and every other file that a page links to,
    unchanged."""
    made = {f"reference/{name}": text for name, text in pages().items()}
    for file in files.documentation_pages():
        if file.src_uri in made:
            file.content_string = made[file.src_uri]
    root = Path(config.docs_dir).parent
    for name in PAGES:
        files.append(_file(name, f"project/{name[:-3].lower()}/index.html", config))
    for place in sorted(set(_linked(files, root))):
        files.append(_file(place, f"project/files/{place}{'/index.html' if place.endswith('.md') else ''}", config))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the Markdown. Links from a page of the top folder into docs/ become MkDocs' own; other Markdown files from
    there are shown unchanged."""
    place = page.file.src_uri
    page.meta.setdefault("search", {"boost": _boost(place)})
    if not place.startswith("../"):
        return markdown
    if place.removeprefix("../") not in PAGES:
        return f"# {posixpath.basename(place)}\n\n````markdown\n{markdown}\n````\n"
    return _LINK.sub(lambda link: _from_the_top(link.group(), files), markdown)


def _boost(place: str) -> float:
    """Return how much a hit on this page counts: whoever searches for a word wants to know how to do it, before the
    field or the decision that has the word in its name."""
    return next((weight for begun, weight in _BOOSTS.items() if place.startswith(begun)), 1.0)


def on_page_context(context: TemplateContext, page: Page, config: MkDocsConfig, nav: Navigation) -> TemplateContext:
    """Return the context. The frame of a Chinese page is in Chinese."""
    config.theme["language"] = "zh" if _is_chinese(page) else "en"
    return context


def _is_chinese(page: Page) -> bool:
    return ".zh." in page.file.src_uri


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Return the page for browsers and screen readers: Chinese pages declare their language, and the search has a
    name. Pages declare no alternate language: the menu leads to another page, and the theme would look for a sitemap
    there."""
    label = "搜索" if _is_chinese(page) else "Search"
    named = _ALTERNATE.sub("", output).replace(_SEARCH, f'{_SEARCH} aria-label="{label}"')
    return named.replace('<html lang="en"', '<html lang="zh"', 1) if _is_chinese(page) else named


def on_post_build(config: MkDocsConfig) -> None:
    """Split the Chinese words of the search index, which the search in the browser does not do."""
    place = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(place.read_text(encoding="utf-8"))
    for entry in index["docs"]:
        entry.update({field: _HAN.sub(_parted, entry[field]) for field in ("title", "text")})
    place.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _parted(run: re.Match[str]) -> str:
    return _BETWEEN.join(("", *rjieba.cut(run.group()), ""))


def _file(place: str, at: str, config: MkDocsConfig) -> File:
    return File(
        f"../{place}",
        config.docs_dir,
        config.site_dir,
        use_directory_urls=True,
        dest_uri=at,
        inclusion=InclusionLevel.NOT_IN_NAV,
    )


def _linked(files: Files, root: Path) -> Iterator[str]:
    """Yield the files outside docs/ that pages link to, by their paths from the top folder."""
    for file in files.documentation_pages():
        text = re.sub(r"^```.*?^```", "", file.content_string, flags=re.M | re.S)
        for link in _LINK.findall(text):
            place = posixpath.normpath(posixpath.join("docs", posixpath.dirname(file.src_uri), link))
            if not place.startswith("docs/") and place not in PAGES and (root / place).is_file():
                yield place


def _from_the_top(link: str, files: Files) -> str:
    if link.rstrip("/") == "docs" or not link.startswith("docs/"):
        return link
    place = link.removeprefix("docs/").rstrip("/")
    return f"/{place}" if files.get_file_from_path(place) else f"/{place}/README.md"
