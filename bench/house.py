"""How large the project is: `make house`, or `python -m bench house [REVISION]` beside an earlier revision."""

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tokenize
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
DATA = (".json", ".css", ".html", ".js", ".sql", ".yaml", ".txt", ".mo", ".po")
GENERATED = ("sync.pyi",)
NOT_CODE = {
    *(tokenize.COMMENT, tokenize.ENCODING, tokenize.ENDMARKER),
    *(tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
}
LEAST = 8
"""Lines of the least function that counts as a duplicate of another."""
ODD_NAMES = {"found", "one", "said", "told", "asked"}
"""Participles and pronouns that stand where the noun of the thing should."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("before", nargs="?", help="the revision to compare with, such as a tag or a commit")


async def run(arguments: Namespace) -> None:
    """Print the measures of the working tree, and of the revision."""
    before = {arguments.before: measured_at(arguments.before)} if arguments.before else {}
    columns = before | {"now": measured(ROOT)}
    rows = list(dict.fromkeys(name for column in reversed(columns.values()) for name in column))
    print(f"| | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name in rows:
        print(f"| {name} | {' | '.join(str(column.get(name, '')) for column in columns.values())} |")


def measured_at(revision: str) -> dict[str, int | str]:
    """Return the measures of a revision."""
    done = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True)
    if done.returncode:
        raise SystemExit(f"There is no revision {revision!r} here; name a commit or a tag.")
    archive = done.stdout
    with TemporaryDirectory() as folder, tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
        return measured(Path(folder))


def measured(root: Path) -> dict[str, int | str]:
    """Return each measure of a tree by its name."""
    beside = {source_folder.parent.name: source_folder for source_folder in sorted((root / "packages").glob("*/src"))}
    sources = {"roomlore": root / "src", **beside}
    modules = {name: sorted(folder.rglob("*.py")) for name, folder in sources.items()}
    every = [path for paths in modules.values() for path in paths]
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in every}
    largest = max(every, key=lines.__getitem__)
    measures: dict[str, int | str] = {f"code lines of {name}": code_lines(paths) for name, paths in modules.items()}
    measures["code lines of all packages"] = sum(int(number) for number in measures.values())
    measures["lines of data and templates"] = sum(map(lines_of, files_of(sources, DATA)))
    measures["lines of generated code"] = sum(map(lines_of, files_of(sources, GENERATED)))
    measures["modules"] = len(every)
    measures["largest module"] = f"{largest.name}, {lines[largest]} lines"
    measures["modules above 700 lines"] = sum(number > 700 for number in lines.values())
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in every]
    measures["Protocols and ABCs"] = sum(map(abstract, trees))
    measures["functions that are written twice"] = duplicates(trees)
    bound = [name for tree in trees for name in bindings(tree)]
    measures["odd names"] = sum(name.lstrip("_") in ODD_NAMES for name in bound)
    measures["names composed with an odd one"] = sum(composed_with_odd(name) for name in bound)
    measures |= documented(root)
    measures["words of the pages"] = sum(
        len(path.read_text(encoding="utf-8").split()) for path in [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    )
    return measures


def code_lines(paths: list[Path]) -> int:
    """Return the number of lines that hold code: no comments, docstrings or blank lines."""
    return sum(len(_lines_with_code(path)) for path in paths)


def _lines_with_code(path: Path) -> set[int]:
    held: set[int] = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in NOT_CODE:
                held.update(range(token.start[0], token.end[0] + 1))
    return held - set(_docstring_lines(ast.parse(path.read_bytes())))


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of texts that are no part of an expression: docstrings, and those of constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def files_of(sources: dict[str, Path], endings: tuple[str, ...]) -> list[Path]:
    return [path for folder in sources.values() for path in folder.rglob("*") if path.name.endswith(endings)]


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8", errors="replace").splitlines())


def abstract(tree: ast.Module) -> int:
    """Return the number of classes that derive from Protocol or ABC."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return sum(bool(re.search(r"\b(Protocol|ABC)\b", " ".join(map(ast.unparse, class_.bases)))) for class_ in classes)


def bindings(tree: ast.Module) -> Iterator[str]:
    """Yield each name that the module binds: of variables, parameters, functions, classes and imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.alias():
                yield node.asname or node.name


def composed_with_odd(name: str) -> bool:
    """Return whether the name is made of several words and one of them is odd, as in `_told_of_error`."""
    words = name.strip("_").split("_")
    return len(words) > 1 and not ODD_NAMES.isdisjoint(words)


def duplicates(trees: list[ast.Module]) -> int:
    """Return the number of functions whose body stands elsewhere too, whatever its names."""
    shapes: Counter[str] = Counter()
    for tree in trees:
        for node in ast.walk(tree):
            long = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _length(node) >= LEAST
            if long:
                shapes[_shape(node)] += 1
    return sum(number - 1 for number in shapes.values())


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _shape(node: ast.AST) -> str:
    names = r"(id|arg|attr|name|value|module|asname)=('[^']*'|\"[^\"]*\")"
    return hashlib.sha256(re.sub(names, r"\1", ast.dump(node)).encode()).hexdigest()


def documented(root: Path) -> dict[str, int | str]:
    """Return the numbers of settings, commands and operations that the reference lists, which the tree's own code
    makes."""
    folders = (root, root / "src", *sorted((root / "packages").glob("*/src")))
    program = "import json; from docsite.reference import pages; print(json.dumps(pages()))"
    environment = {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PATH": ""}
    made = subprocess.run([sys.executable, "-c", program], env=environment, cwd=root, capture_output=True, check=True)
    texts = {name.removesuffix(".md"): text for name, text in json.loads(made.stdout).items()}
    operation = r"^\| `/[^|]*\| (?:GET|POST|PUT|PATCH|DELETE) "
    commands = re.findall(r"^## `roomlore ([a-z-]+)", texts["cli"], re.MULTILINE)
    return {
        "settings": len(re.findall(r"^\| `\w+`", texts["settings"], re.MULTILINE)),
        "commands": len(commands),
        "commands at the top level": len(set(commands)),
        "HTTP operations": len(re.findall(operation, texts["http"], re.MULTILINE)),
        "MCP tools": len(re.findall(r"^## \w+$", texts["mcp"], re.MULTILINE)),
    }
