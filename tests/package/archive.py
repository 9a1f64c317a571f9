"""Zip archives that are the same for the same content."""

import zipfile

# The oldest date that the format knows.
DATE = (1980, 1, 1, 0, 0, 0)
REGULAR_FILE = 0o100000


def write(path, files):
    """Writes (name, content, mode) of each file, in this order."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = (REGULAR_FILE | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
