"""The system calls that a systemd unit allows, as a filter of the kernel's. What systemd's groups (@system-service) hold is in
tests/data/syscall_groups.txt, what a call's number is the C compiler knows."""
import ctypes
import os
import pathlib
import platform
import re
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, KILL_PROCESS, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
EAFNOSUPPORT = 97
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
NOBODY = 65534
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2


def groups():
    out, name = {}, None
    for line in (ROOT / "tests/data/syscall_groups.txt").read_text().splitlines():
        if line.startswith("@"):
            name = line.strip()
            out[name] = []
        elif name and line.strip() and not line.strip().startswith("#"):
            out[name].append(line.strip())
    return out


def members(word, known):
    """The calls of a word: a call, or a group with the groups in it."""
    if not word.startswith("@"):
        return {word}
    return set().union(*(members(part, known) for part in known[word]))


def settings(unit, key):
    return re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE)


def allowed_calls(unit):
    """As systemd reads it: the first line says that others are refused, each later one adds or, with ~, takes away."""
    known = groups()
    out = members("@default", known)
    for line in settings(unit, "SystemCallFilter"):
        words = set().union(*(members(word, known) for word in line.lstrip("~").split()))
        out = out - words if line.startswith("~") else out | words
    return out


def numbers():
    text = subprocess.run(["c++", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c++", "/dev/null"], check=True,
                          capture_output=True, text=True).stdout
    return {name: int(number) for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", text, re.MULTILINE)}


def program(unit):
    """The filter's instructions. A call that is not allowed ends the process here even where the unit would only refuse it."""
    number = numbers()
    families = [FAMILIES[word] for line in settings(unit, "RestrictAddressFamilies") for word in line.split()]

    def step(code, value, yes=0, no=0):
        return struct.pack("=HBBI", code, yes, no, value)

    out = [step(LOAD, ARCHITECTURE), step(JUMP_IF_EQUAL, AUDIT_ARCH[platform.machine()], 1, 0), step(RETURN, KILL_PROCESS),
           step(LOAD, NUMBER)]
    for call in sorted(allowed_calls(unit) & number.keys() - {"socket"}):
        out += [step(JUMP_IF_EQUAL, number[call], 0, 1), step(RETURN, ALLOW)]
    out += [step(JUMP_IF_EQUAL, number["socket"], 1, 0), step(RETURN, KILL_PROCESS), step(LOAD, FIRST_ARGUMENT)]
    for family in families:
        out += [step(JUMP_IF_EQUAL, family, 0, 1), step(RETURN, ALLOW)]
    return out + [step(RETURN, REFUSE | EAFNOSUPPORT)]


def confine(unit):
    """For subprocess' preexec_fn: from here on only what the unit allows, and as nobody in particular, as DynamicUser= says:
    root would do more (SQLite gives its files to the folder's owner)."""
    steps = program(unit)
    code = ctypes.create_string_buffer(b"".join(steps))
    libc = ctypes.CDLL(None, use_errno=True)

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]

    whole = Filter(len(steps), ctypes.cast(code, ctypes.c_void_p))

    def apply():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(whole), 0, 0):
            raise OSError(ctypes.get_errno(), "the filter was not taken")

    return apply
