"""Compiles the kernel for the wheel, with the C compiler of the wheel `ziglang`: no other compiler is needed, and it
compiles for every platform on any.

`ROOMLORE_KERNEL_PLATFORM` names the platform; it is this one otherwise."""

import os
import subprocess
import sys
from pathlib import Path
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
        platform = os.environ.get("ROOMLORE_KERNEL_PLATFORM") or this_platform()
        for old in PACKAGE.glob("kernel.*"):
            old.unlink()
        if version == "editable" and not has_compiler():
            self.app.display_warning(
                "The kernel is not compiled without the package ziglang; roomlore works without it."
            )
            return
        name = library_name(platform)
        compile_kernel(platform, PACKAGE / name)
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False
        build_data["artifacts"].append(f"src/roomlore_kernel/{name}")


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


def compile_kernel(platform: str, into: Path, *more: str) -> None:
    """Compile `link.c` once for each form, and all of them to one library."""
    target = TARGETS[platform]
    objects = into.parent / "build"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target, *FLAGS, *more]
    if "windows" not in target:
        compiler.append("-fPIC")
    objects.mkdir(exist_ok=True)
    try:
        made = []
        for form, flags in FORMS[target.partition("-")[0]].items():
            made.append(objects / f"link_{form}.o")
            _run([*compiler, *flags, f"-DFORM={form}", "-c", "link.c", "-o", made[-1]])
        _run([*compiler, "-shared", "-s", "kernel.c", "write.c", *made, "-lm", "-o", into])
    finally:
        for left in objects.iterdir():
            left.unlink()
        objects.rmdir()
        for left in (into.with_suffix(".pdb"), into.with_suffix(".lib"), into.with_name("link.lib")):
            left.unlink(missing_ok=True)


def _run(command: list[object]) -> None:
    subprocess.run([*map(str, command)], cwd=SOURCES, check=True)
