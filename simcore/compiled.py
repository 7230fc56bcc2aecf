"""`@compiled`: machine code where numba has a wheel, the same Python where it has none.

Numba's disk cache does not notice an edited callee in another file, so its folder is keyed by a hash of
all of simcore's sources: stale physics cannot be loaded. Where the cache cannot be written the code is
compiled for the process alone, with a warning that says so.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])
_PACKAGE = Path(__file__).parent
_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_IN_PLACE: dict[str, Any] = _ALWAYS | {"_nrt": False}


def source_hash() -> str:
    """Hash of every Python source of simcore; names the folder of cached machine code."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """A writable folder for machine code, or None. `TRIMTAB_CACHE_DIR` moves it."""
    home = os.environ.get("TRIMTAB_CACHE_DIR")
    base = Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "trimtab"
    folder = base / "numba" / source_hash()
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

    if _folder is not None:
        vars(numba.config)["CACHE_DIR"] = str(_folder)  # also where numba was imported before us
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
    return cast("_F", numba.njit(cache=_folder is not None, **_ALWAYS)(function))


def compiled_in_place(function: _F) -> _F:
    """`compiled` for code that only works on the arrays it is given and allocates none.

    Without reference counts (an atomic operation per array and call) small functions cost half the time.
    """
    if not HAVE_COMPILER:
        return function
    return cast("_F", numba.njit(cache=_folder is not None, **_IN_PLACE)(function))


def inlined(function: _F) -> _F:
    """`compiled_in_place`, copied into its callers: for a part of a kernel that takes many arrays."""
    if not HAVE_COMPILER:
        return function
    return cast("_F", numba.njit(inline="always", **_IN_PLACE)(function))
