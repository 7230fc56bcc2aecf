"""What every test may ask for: the shared folder, a running site, and the Chromium found on this machine."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
CHROMIUM_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of facts and data beside the checkout; TRIMTAB_SHARED names another place."""
    folder = Path(os.environ.get("TRIMTAB_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the shared folder of facts and data, which is not at {folder}")
    return folder
