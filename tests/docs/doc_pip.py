"""In the place of pip: looks whether what would be installed is to be had, and installs nothing."""

import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def fault(requirement: str) -> str:
    """Why it cannot be had; empty if it can."""
    wanted = Requirement(requirement.replace(".[", "roomlore[", 1) if requirement.startswith(".[") else requirement)
    if wanted.name == PROJECT["name"]:
        unknown = wanted.extras - PROJECT["optional-dependencies"].keys()
        return f"roomlore has no extra {', '.join(sorted(unknown))}" if unknown else ""
    try:
        there = version(wanted.name)
    except PackageNotFoundError:
        return f"{wanted.name} is not installed here, so no test can tell whether the page works with it"
    return "" if wanted.specifier.contains(there) else f"{wanted.name} {there} is installed, not {wanted.specifier}"


if __name__ == "__main__":
    verb, *requirements = sys.argv[1:]
    if verb != "install" or not requirements:
        sys.exit(f"not a command that the documentation should give: pip {' '.join(sys.argv[1:])}")
    sys.exit("\n".join(filter(None, map(fault, requirements))) or None)
