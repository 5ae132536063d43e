"""The folder for what takes long to make or to download, and is kept for the next program."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return ``MXOPT_CACHE`` if it is set, else the user's cache folder; it need not exist yet."""
    import platformdirs

    return Path(os.environ.get("MXOPT_CACHE") or platformdirs.user_cache_dir("mxopt"))
