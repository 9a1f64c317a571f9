#!/usr/bin/env python3
"""Prints the functions of a program that a run of it calls, by symbol, in the order of their first call.

Usage: called_functions.py PROGRAM [ARGUMENT]...

The run lasts until it ends, or this program is told to end (SIGTERM), which is passed on. Each function's first byte is a
breakpoint until it is hit. The program has its symbols and may stand at any address. Linux on x86-64.
"""
import ctypes
import errno
import os
import signal
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.restype = ctypes.c_long
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

# Requests and options of ptrace(2).
TRACEME, CONT, GETREGS, SETREGS, SETOPTIONS = 0, 7, 12, 13, 0x4200
TRACECLONE, EXITKILL = 0x8, 0x100000
# Threads too, of waitpid(2).
WALL = 0x40000000

BREAKPOINT = b"\xcc"
REGISTERS_BYTES = 27 * 8
RIP = slice(16 * 8, 17 * 8)


def ptrace(request, thread, data=0):
    """Asks the kernel, and returns whether it was done: a thread may just have ended."""
    is_done = LIBC.ptrace(request, thread, 0, data) == 0
    if not is_done and ctypes.get_errno() == errno.EPERM:
        sys.exit("this system lets no program look at another (ptrace)")
    return is_done


def functions(program):
    """Returns the symbol of each function by its offset."""
    listed = subprocess.run(["nm", program], check=True, capture_output=True, text=True)
    rows = (line.split() for line in listed.stdout.splitlines())
    return {int(row[0], 16): row[2] for row in rows if len(row) == 3 and row[1] in "tT"}


def begun(program, arguments):
    """Starts the program, which stands before its first instruction then."""
    process = os.fork()
    if process == 0:
        ptrace(TRACEME, 0)
        os.execv(program, [program, *arguments])
    os.waitpid(process, 0)
    ptrace(SETOPTIONS, process, TRACECLONE | EXITKILL)
    return process


class Breakpoints:
    """The breakpoints in a process, and those that were hit."""

    def __init__(self, process, offsets):
        with open(f"/proc/{process}/maps", encoding="utf-8") as maps:
            self.base = int(maps.readline().split("-")[0], 16)
        self.memory = os.open(f"/proc/{process}/mem", os.O_RDWR)
        self.unhit = {at: os.pread(self.memory, 1, self.base + at) for at in offsets}
        self.hit = []
        for at in offsets:
            os.pwrite(self.memory, BREAKPOINT, self.base + at)

    def pass_over(self, thread):
        """Takes out the breakpoint at which a thread stands; another thread may have done so before."""
        registers = ctypes.create_string_buffer(REGISTERS_BYTES)
        if not ptrace(GETREGS, thread, ctypes.addressof(registers)):
            return
        at = int.from_bytes(registers[RIP], "little") - len(BREAKPOINT)
        offset = at - self.base
        if offset in self.unhit:
            os.pwrite(self.memory, self.unhit.pop(offset), at)
            self.hit.append(offset)
        registers[RIP] = at.to_bytes(8, "little")
        ptrace(SETREGS, thread, ctypes.addressof(registers))


def watched(process, breakpoints):
    """Lets the process run to its end."""
    ptrace(CONT, process)
    while True:
        thread, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            if thread == process:
                return
            continue
        given = os.WSTOPSIG(status)
        if given == signal.SIGTRAP and status >> 16 == 0:
            breakpoints.pass_over(thread)
        # Stops of the tracing itself are no signals of the program.
        is_own = given in (signal.SIGTRAP, signal.SIGSTOP)
        ptrace(CONT, thread, 0 if is_own else given)


def main():
    program, arguments = sys.argv[1], sys.argv[2:]
    known = functions(program)
    process = begun(program, arguments)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(process, signal.SIGTERM))
    breakpoints = Breakpoints(process, known)
    watched(process, breakpoints)
    print("\n".join(known[at] for at in breakpoints.hit))


main()
