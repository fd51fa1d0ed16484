"""Opening a file inside allowed folders on a platform without folder descriptors (Windows).

The file is opened first, and then checked by the path that the operating system reports for the open file, not by the
requested path. A link that is swapped in between therefore gives no access to a file outside.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from typing import Final

from sennit.folders.safe_open import IsHidden, OpenedFile, ReadErrors, check_regular

_FLAGS: Final = sum(
    getattr(os, name, 0)
    for name in ("O_RDONLY", "O_BINARY", "O_NOINHERIT", "O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY")
)


def open_by_path(
    roots: Sequence[Path], given: Sequence[Path], path: str, is_hidden: IsHidden | None, errors: ReadErrors
) -> OpenedFile:
    """Open a file for reading by its absolute path. Raises ReadError."""
    if os.name == "nt" and (":" in path[2:] or PureWindowsPath(path).is_reserved()):
        raise errors.bad_path("it names a device or a stream")
    if not _inside(os.path.normpath(path), (*roots, *given)):
        raise errors.outside()
    try:
        real = os.path.realpath(path)
        if not _inside(real, roots):
            raise errors.outside()
        if is_hidden is not None and is_hidden(Path(real)):
            raise errors.missing()
        mode = Path(real).stat().st_mode
        if stat.S_ISDIR(mode):
            raise errors.folder()
        if not stat.S_ISREG(mode):
            raise errors.special()
        descriptor = os.open(real, _FLAGS)
    except OSError as error:
        raise errors.system(error) from error
    try:
        actual = _opened_path(descriptor)
        if not _inside(actual, roots):
            raise errors.outside()
        if is_hidden is not None and is_hidden(Path(actual)):
            raise errors.missing()
        return OpenedFile(descriptor, check_regular(os.fstat(descriptor), errors), Path(actual))
    except BaseException:
        os.close(descriptor)
        raise


def _inside(path: str, roots: Sequence[Path]) -> bool:
    return any(Path(os.path.normcase(path)).is_relative_to(os.path.normcase(root)) for root in roots)


if sys.platform == "win32":
    import ctypes
    import msvcrt

    def _opened_path(descriptor: int) -> str:
        handle = msvcrt.get_osfhandle(descriptor)
        name = ctypes.create_unicode_buffer(32_768)
        if not ctypes.windll.kernel32.GetFinalPathNameByHandleW(ctypes.c_void_p(handle), name, len(name), 0):
            raise ctypes.WinError()
        return name.value.removeprefix("\\\\?\\")

else:

    def _opened_path(descriptor: int) -> str:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
