"""The link model of roomlore, compiled. `roomlore` finds this package by itself and works the same without it.

`link` and `write` take one argument, bytes laid out as `csrc/interface.h` says: more would each take half as long as
the call. They keep the interpreter's lock: a call
takes some forty microseconds, less than handing the lock over and back may cost.
"""

import ctypes
import sys
from pathlib import Path

_SUFFIX = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
try:
    _LIBRARY = ctypes.PyDLL(str(Path(__file__).with_name(f"kernel.{_SUFFIX}")))
except OSError as error:
    raise ImportError("roomlore-kernel was installed without its library, or with that of another platform") from error

link, write = _LIBRARY.roomlore_kernel_link, _LIBRARY.roomlore_kernel_write
link.argtypes = write.argtypes = (ctypes.c_char_p,)
use_plain = _LIBRARY.roomlore_kernel_use_plain
use_best = _LIBRARY.roomlore_kernel_use_best
use_plain.restype = use_best.restype = None
_LIBRARY.roomlore_kernel_layout.restype = _LIBRARY.roomlore_kernel_form.restype = ctypes.c_char_p


def layout() -> str:
    """Return the names of the features as the kernel knows them, in order."""
    text: bytes = _LIBRARY.roomlore_kernel_layout()
    return text.decode()


def sizes() -> tuple[int, ...]:
    """Return the sizes of the structures of `csrc/interface.h`, in order."""
    numbers = (ctypes.c_int64 * 6)()
    _LIBRARY.roomlore_kernel_sizes(numbers)
    return tuple(numbers)


def form() -> str:
    """Return for which processors the code in use was compiled: `plain`, or `avx2` where there is AVX2."""
    name: bytes = _LIBRARY.roomlore_kernel_form()
    return name.decode()
