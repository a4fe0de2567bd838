"""Builds the fake `libnvidia-ml.so.1` with gcc: the C of `source/`, and a stub for all the rest.

Every function of nvml.h is exported (`symbols.txt`: the names of release 13.5). The ones without a
body in C say "not supported", or the error that the text file asks for. What an older driver's
library does not have yet is left out of the exports, so that loading it fails as it does there.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SONAME = "libnvidia-ml.so.1"
HERE = Path(__file__).parent
SYMBOLS = tuple((HERE / "symbols.txt").read_text().split())
DESCRIPTION = "fake_nvml_layouts"  # exported beside them, for the tests of the structs

Build = Callable[[Collection[str]], Path]
"""Gives the folder of a library without some functions."""

COMPILER = ("gcc", "-std=gnu11", "-O0", "-g", "-fPIC", "-Wall", "-Wextra")
STUBS = """\
/* Made by library.py: a body that another file has wins over the weak one here. */
int unanswered(void *device, const char *call);
"""
STUB = "__attribute__((weak)) int {0}(void *first) {{ return unanswered(first, __func__); }}\n"


class BuildError(Exception):
    """gcc does not like the source."""


def compiled(folder: Path) -> tuple[Path, ...]:
    """Compile every source into a folder, beside a file `warnings`. Raises BuildError."""
    stubs = folder / "stubs.c"
    stubs.write_text(STUBS + "".join(map(STUB.format, SYMBOLS)))
    sources = (*sorted((HERE / "source").glob("*.c")), stubs)
    objects = tuple(folder / f"{source.stem}.o" for source in sources)
    with ThreadPoolExecutor() as pool:
        warnings = pool.map(compiled_one, sources, objects)
        (folder / "warnings").write_text("".join(warnings))
    return objects


def compiled_one(source: Path, made: Path) -> str:
    """Compile one source, and give gcc's warnings. Raises BuildError."""
    return gcc("-c", str(source), "-o", str(made))


def linked(objects: Collection[Path], folder: Path, without: Collection[str] = ()) -> Path:
    """Make the library in a folder of its own, for LD_LIBRARY_PATH, and give the folder.

    `without` names functions that it does not have. Raises BuildError, or ValueError for a name
    that NVML never had.
    """
    if unknown := set(without) - set(SYMBOLS):
        raise ValueError(f"not in symbols.txt: {', '.join(sorted(unknown))}")
    folder.mkdir()
    exports = folder / "exports"
    names = "; ".join([DESCRIPTION, *(name for name in SYMBOLS if name not in without)])
    exports.write_text(f"{{ global: {names}; local: *; }};\n")
    script = f"-Wl,-soname,{SONAME},--version-script,{exports}"
    paths = [str(made) for made in objects]
    gcc("-shared", "-pthread", script, *paths, "-lm", "-o", str(folder / SONAME))
    return folder


def gcc(*arguments: str) -> str:
    """Run gcc, and give its warnings. Raises BuildError."""
    ran = subprocess.run([*COMPILER, *arguments], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise BuildError(ran.stderr)
    return ran.stderr
