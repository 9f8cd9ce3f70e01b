"""Compiles the kernel for the wheel, with the C compiler of the wheel `ziglang`: no other compiler is needed, and it
compiles for every platform on any.

`ROOMLORE_KERNEL_PLATFORM` names the platform; it is this one otherwise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

HERE = Path(__file__).parent
SOURCES = HERE / "csrc"
PACKAGE = HERE / "src/roomlore_kernel"
TARGETS = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64.manylinux2014_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_1_x86_64": "x86_64-linux-musl",
    "musllinux_1_1_aarch64": "aarch64-linux-musl",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
    "win_arm64": "aarch64-windows-gnu",
}
"""The platforms, as wheels name them, and as the compiler does."""
FORMS = {"x86_64": {"plain": [], "avx2": ["-mavx2", "-mfma"]}, "aarch64": {"plain": []}}
"""The forms of `link.c` on each kind of processor, with what the compiler is told."""
FLAGS = [
    "-std=gnu11",
    "-O3",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-ffile-prefix-map=.=kernel",
]


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable installation gets the library beside its sources, without a compiler none."""
        platform = os.environ.get("ROOMLORE_KERNEL_PLATFORM") or this_platform()
        name = library_name(platform)
        if version == "editable":
            if has_compiler():
                compile_kernel(platform, PACKAGE / name)
            else:
                self.app.display_warning("Without the package ziglang there is no kernel. roomlore works without it.")
            return
        library = HERE / "build" / platform / name
        compile_kernel(platform, library)
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        build_data["force_include"][str(library)] = f"roomlore_kernel/{name}"


def this_platform() -> str:
    known = {tag.platform for tag in sys_tags()}
    for platform in TARGETS:
        if known & set(platform.split(".")):
            return platform
    raise SystemExit("roomlore-kernel does not know this platform. roomlore works without it.")


def has_compiler() -> bool:
    command = [sys.executable, "-m", "ziglang", "version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def library_name(platform: str) -> str:
    suffix = "dll" if platform.startswith("win") else "dylib" if platform.startswith("macosx") else "so"
    return f"kernel.{suffix}"


def compile_kernel(platform: str, into: Path) -> None:
    """Compile `link.c` once for each form, and all of them to one library."""
    target = TARGETS[platform]
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target, *FLAGS]
    if "windows" not in target:
        compiler.append("-fPIC")
    into.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        made = []
        for form, flags in FORMS[target.partition("-")[0]].items():
            made.append(f"{folder}/link_{form}.o")
            _run(*compiler, *flags, f"-DFORM={form}", "-c", "link.c", "-o", made[-1])
        library = Path(folder, into.name)
        _run(*compiler, "-shared", "-s", "kernel.c", "write.c", *made, "-lm", "-o", library)
        # Not over the old one, which a process may have loaded.
        into.unlink(missing_ok=True)
        shutil.copy(library, into)


def _run(*command: object) -> None:
    subprocess.run([*map(str, command)], cwd=SOURCES, check=True)
