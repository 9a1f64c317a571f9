"""What a binary is made for: the machine, and the newest version of the C library that it asks for."""

import re
import struct
import subprocess

# By the number in the file's head.
MACHINES = {62: "x86_64", 183: "aarch64", 40: "armv7l"}


def machine(binary):
    with open(binary, "rb") as file:
        head = file.read(20)
    assert head[:4] == b"\x7fELF", f"{binary} is no binary for Linux"
    return MACHINES[struct.unpack_from("<H", head, 18)[0]]


def newest(binary):
    """The minor version N of the newest symbol GLIBC_2.N in the binary; None where it asks for none."""
    text = subprocess.run(["grep", "-aoE", r"GLIBC_2\.[0-9]+", binary], capture_output=True, text=True).stdout
    versions = {int(found) for found in re.findall(r"GLIBC_2\.(\d+)", text)}
    return max(versions, default=None)
