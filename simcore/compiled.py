"""`@compiled`: machine code where numba has a wheel, the same Python where it has none.

Numba's disk cache does not notice an edited callee in another file, so its folder is keyed by a hash of the
function's source file and of all that it imports from simcore, and they in turn: stale physics cannot be
loaded, and an edit elsewhere compiles nothing anew. Where the cache cannot be written the code is compiled for
the process alone, with a warning that says so.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])
_PACKAGE = Path(__file__).parent
_IMPORT = re.compile(r"^\s*(?:from|import) +simcore\.?([\w.]*)", re.MULTILINE)
_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_IN_PLACE: dict[str, Any] = _ALWAYS | {"_nrt": False}


@cache
def source_hash(path: Path) -> str:
    """Hash of a Python source and of all of simcore that it imports, however far; names the folder of its code."""
    digest = hashlib.sha256()
    for one in sorted(sources(path)):
        digest.update(one.as_posix().encode() + b"\0" + one.read_bytes())
    return digest.hexdigest()[:16]


def sources(path: Path) -> set[Path]:
    """A Python source and all files of simcore that it imports, and they in turn."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += _imported(one)
    return found


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """Files of simcore that a source imports from; of a package all its own, whichever names are taken."""
    files: list[Path] = []
    for name in _IMPORT.findall(path.read_text()):
        place = _PACKAGE.joinpath(*name.split(".")) if name else _PACKAGE
        files += sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return tuple(files)


def _cache_folder() -> Path | None:
    """A writable folder for machine code, or None. `TRIMTAB_CACHE_DIR` moves it."""
    home = os.environ.get("TRIMTAB_CACHE_DIR")
    base = Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "trimtab"
    folder = base / "numba"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


try:
    _folder = _cache_folder()
    if _folder is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(_folder)
    else:
        warnings.warn(
            "the cache of compiled code cannot be written; set TRIMTAB_CACHE_DIR to a writable folder. "
            "Until then each process compiles anew (about half a minute).",
            RuntimeWarning,
            stacklevel=2,
        )
    import numba

    HAVE_COMPILER = True
except ImportError:  # no wheel for this platform: same code, slow
    HAVE_COMPILER = False


def compiled(function: _F) -> _F:
    """Compile with numba (nogil, cached on disk), or return the function as it is.

    A compiled function must not be passed as an argument or closure to another one (that never hits the
    disk cache in a new process); refer to it as a module global.
    """
    if not HAVE_COMPILER:
        return function
    return _with_cache(function, _ALWAYS)


def compiled_in_place(function: _F) -> _F:
    """`compiled` for code that only works on the arrays it is given and allocates none.

    Without reference counts (an atomic operation per array and call) small functions cost half the time.
    """
    if not HAVE_COMPILER:
        return function
    return _with_cache(function, _IN_PLACE)


def _with_cache(function: _F, options: dict[str, Any]) -> _F:
    if _folder is not None:  # numba reads where to look as it decorates
        folder = _folder / source_hash(Path(function.__code__.co_filename))
        vars(numba.config)["CACHE_DIR"] = str(folder)
    return cast("_F", numba.njit(cache=_folder is not None, **options)(function))


def inlined(function: _F) -> _F:
    """`compiled_in_place`, copied into its callers: for a part of a kernel that takes many arrays."""
    if not HAVE_COMPILER:
        return function
    return cast("_F", numba.njit(inline="always", **_IN_PLACE)(function))
