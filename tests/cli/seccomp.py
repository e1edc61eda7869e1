"""What a sandbox refuses, for the programs that tests start."""

import ctypes
import os
import struct


def refuse_io_uring():
    """A seccomp filter as containers have it: io_uring_setup (425 on every architecture) fails with EPERM."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, jump, ret = 0x20, 0x15, 0x06
    code = b"".join(struct.pack("HBBI", *step) for step in [(load, 0, 0, 0), (jump, 0, 1, 425), (ret, 0, 0, 0x00050001), (ret, 0, 0, 0x7FFF0000)])
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        os._exit(99)
