"""Pack a folder into a zip archive that depends on the files' names and content only."""

from __future__ import annotations

import zipfile
from pathlib import Path


def pack(folder: str | Path, archive: str | Path) -> None:
    """Write every file of a folder to a zip file, sorted by name, without dates.

    Args:
        folder: the folder; files are named relative to it.
        archive: the zip file; an existing one is replaced.

    Raises:
        OSError: a file cannot be read, or the archive cannot be written.
    """
    folder = Path(folder)
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            member = zipfile.ZipInfo(path.relative_to(folder).as_posix())  # dated 1980-01-01
            member.external_attr = 0o644 << 16
            # PNG files are compressed already.
            member.compress_type = (
                zipfile.ZIP_STORED if path.suffix == ".png" else zipfile.ZIP_DEFLATED
            )
            packed.writestr(member, path.read_bytes(), compresslevel=9)
