"""Runs a command that is killed at any system call that a container runtime's default refuses.

    python syscalls.py COMMAND ...

The calls are those that the default profile of containerd and Docker gives to nobody without a
capability (seccomp(2), filter mode). There they fail with EPERM; here they kill, so that a test
sees each one. Numbers are those of x86-64.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

REFUSED = {
    "syslog": 103,
    "pivot_root": 155,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "mbind": 237,
    "set_mempolicy": 238,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "unshare": 272,
    "move_pages": 279,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "open_by_handle_at": 304,
    "setns": 308,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsmount": 432,
    "mount_setattr": 442,
}

LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # linux/bpf_common.h: BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
ALLOW, KILL = 0x7FFF0000, 0x80000000  # linux/seccomp.h, of the process
SET_NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2  # linux/prctl.h
NUMBER = 0  # where struct seccomp_data has the call's number


class Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def program() -> bytes:
    """Write the filter: load the number, jump to the end for a refused one, allow the others."""
    count = len(REFUSED)
    lines = [(LOAD, 0, 0, NUMBER)]
    lines += [(EQUAL, count - at, 0, number) for at, number in enumerate(REFUSED.values())]
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, KILL)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def install() -> None:
    """Filter this process and all that it becomes. Raises OSError."""
    code = program()
    buffer = ctypes.create_string_buffer(code, len(code))
    whole = Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((SET_NO_NEW_PRIVS, 1, 0, 0, 0), (SET_SECCOMP, FILTER, ctypes.byref(whole))):
        if libc.prctl(*words):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    install()
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - the caller's own command
