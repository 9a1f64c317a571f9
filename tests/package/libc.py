"""The newest version of the C library that a binary asks for."""

import re
import subprocess


def newest(binary):
    """The minor version N of the newest symbol GLIBC_2.N in the binary; None where it asks for none."""
    text = subprocess.run(["grep", "-aoE", r"GLIBC_2\.[0-9]+", binary], capture_output=True, text=True).stdout
    versions = {int(found) for found in re.findall(r"GLIBC_2\.(\d+)", text)}
    return max(versions, default=None)
