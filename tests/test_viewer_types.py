"""A face that does not say to whom it shows an answer does not pass the check of types; a library's caller may."""

import subprocess
import sys
from pathlib import Path

_SERVICE = """
class Service:
    async def told(self, room: str, *, viewer: str | None = None) -> str:
        return f"{room} to {viewer}"
"""
_CALLER = """
from roomlore.services.said import Service

async def calls(service: Service) -> None:
    await service.told("tea")
    await service.told("tea", viewer=None)
"""


def test_a_face_that_forgets_the_viewer_fails(tmp_path):
    for folder, name, text in (
        ("roomlore", "__init__", ""),
        ("roomlore/services", "said", _SERVICE),
        ("roomlore/surfaces", "face", _CALLER),
        ("roomlore/services", "caller", _CALLER),
        ("roomlore_server/http", "face", _CALLER),
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "__init__.py").touch()
        (tmp_path / folder / f"{name}.py").write_text(text, "utf-8")
    config = Path(__file__).parents[1] / "pyproject.toml"
    command = [sys.executable, "-m", "mypy", "--config-file", config, "roomlore", "roomlore_server"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    missing = 'error: Missing named argument "viewer" for "told" of "Service"  [call-arg]'
    assert sorted(line for line in ran.stdout.splitlines() if ": error: " in line) == [
        f"roomlore/surfaces/face.py:5: {missing}",
        f"roomlore_server/http/face.py:5: {missing}",
    ], ran
