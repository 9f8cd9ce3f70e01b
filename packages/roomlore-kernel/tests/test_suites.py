"""The tests of the linker in numpy, once more with the compiled form."""

import sys
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from comparison import COMPILED

from roomlore.adapters import weights
from roomlore.core.linking import window as windows
from roomlore.core.models import Entry

TESTS = Path(__file__).parents[3] / "tests/core"


class CompiledWindow(windows.RoomWindow):
    def __init__(self, kernel: windows.RowWriter | None = COMPILED.kernel) -> None:
        super().__init__(kernel)

    @classmethod
    def of(cls, entries: Iterable[Entry], kernel: windows.RowWriter | None = COMPILED.kernel) -> windows.RoomWindow:
        return super().of(entries, kernel)


def compiled(*names: str) -> dict[str, object]:
    """Return the tests of these modules, of which a later one may import an earlier one."""
    found: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "load_link_model", lambda: COMPILED)
        patch.setattr(windows, "RoomWindow", CompiledWindow)
        for name in names:
            module = loaded(name)
            patch.setitem(sys.modules, name, module)
            found |= {key: value for key, value in vars(module).items() if key.startswith(("test_", "Test"))}
    return found


def loaded(name: str) -> ModuleType:
    spec = spec_from_file_location(f"compiled_{name}", TESTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


globals().update(compiled("test_linking", "test_relinked_window"))
