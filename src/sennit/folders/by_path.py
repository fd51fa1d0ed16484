"""Opening a file below allowed folders where a folder cannot be opened (Windows): open, then see what it is.

What counts is the path of the open file itself, as the operating system has it, and no longer the path that was
asked for; so a link that is put there meanwhile opens nothing that is given away.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import Final

from sennit.folders.opening import Hides, Opened, Refusals, checked

_FLAGS: Final = sum(
    getattr(os, name, 0)
    for name in ("O_RDONLY", "O_BINARY", "O_NOINHERIT", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY")
)


def open_by_path(
    roots: Sequence[Path], given: Sequence[Path], path: str, hides: Hides | None, refusals: Refusals
) -> Opened:
    """Open a file for reading by its absolute path. Raises ReadError."""
    if os.name == "nt" and (":" in path[2:] or PureWindowsPath(path).is_reserved()):
        raise refusals.bad_path("it names a device or a stream")
    if not _inside(os.path.normpath(path), (*roots, *given)):
        raise refusals.outside()
    try:
        real = os.path.realpath(path)
        if not _inside(real, roots):
            raise refusals.outside()
        if hides is not None and hides(Path(real)):
            raise refusals.missing()
        mode = Path(real).stat().st_mode
        if stat.S_ISDIR(mode):
            raise refusals.folder()
        if not stat.S_ISREG(mode):
            raise refusals.special()
        descriptor = os.open(real, _FLAGS)
    except OSError as error:
        raise refusals.system(error) from error
    try:
        actual = _path_of(descriptor)
        if not _inside(actual, roots):
            raise refusals.outside()
        if hides is not None and hides(Path(actual)):
            raise refusals.missing()
        return Opened(descriptor, checked(os.fstat(descriptor), refusals), Path(actual))
    except BaseException:
        os.close(descriptor)
        raise


def _inside(path: str, roots: Sequence[Path]) -> bool:
    return any(Path(os.path.normcase(path)).is_relative_to(os.path.normcase(root)) for root in roots)


if sys.platform == "win32":
    import ctypes
    import msvcrt

    def _path_of(descriptor: int) -> str:
        handle = msvcrt.get_osfhandle(descriptor)
        name = ctypes.create_unicode_buffer(32_768)
        if not ctypes.windll.kernel32.GetFinalPathNameByHandleW(ctypes.c_void_p(handle), name, len(name), 0):
            raise ctypes.WinError()
        return name.value.removeprefix("\\\\?\\")

else:

    def _path_of(descriptor: int) -> str:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
