"""Take away from a process what student code must not have (Linux; elsewhere what there is)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import struct
import sys

LINUX = sys.platform == "linux"

# Flags and calls of Linux that Python 3.11 does not name.
NEW_NAMESPACES = 0x00020000 | 0x08000000 | 0x20000000  # mounts, System V memory, process numbers
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_SLAVE = 0x2, 0x4, 0x1000, 0x4000, 0x80000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 24, 36, 38
SECCOMP_MODE_FILTER = 2

# System calls that reach out of the process, use memory that no limit counts, or take processors:
# (number on x86_64, number on aarch64).
REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "sched_setaffinity": (203, 122),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
}
CLONE, CLONE3, SOCKET, PRLIMIT = (56, 220), (435, 435), (41, 198), (302, 261)
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
ANY_NEW_NAMESPACE = 0x7E020000
X32 = 0x40000000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
AF_UNIX = 1


def private_namespaces() -> None:
    """Give the children of this process their own process numbers, and it its own mounts.

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    _call("unshare", NEW_NAMESPACES)
    _call("mount", b"none", b"/", None, MS_REC | MS_SLAVE, None)


def mount_scratch(folder: str, over: list[str], uid: int, size: int, files: int) -> None:
    """Mount an empty folder in memory, for one user, of limited size, and show it in more places.

    Terminals are limited, too: the system has a few thousand for everybody.

    Raises
    ------
    OSError
        If the kernel refuses.
    """
    options = f"mode=700,uid={uid},gid={uid},size={size},nr_inodes={files}"
    flags = MS_NOSUID | MS_NODEV
    _call("mount", b"tmpfs", folder.encode(), b"tmpfs", flags, options.encode())
    for place in over:
        _call("mount", folder.encode(), place.encode(), None, MS_BIND, None)
    with contextlib.suppress(OSError):
        terminals = b"newinstance,ptmxmode=0666,mode=620,max=32"
        _call("mount", b"devpts", b"/dev/pts", b"devpts", MS_NOSUID, terminals)


def become(uid: int) -> None:
    """Turn from root into the user `uid`, for good; without root, drop every capability."""
    if os.geteuid() == 0 and uid != 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    elif LINUX:
        for capability in range(64):
            _prctl(PR_CAPBSET_DROP, capability)
        header = struct.pack("=Ii", 0x20080522, 0)
        with contextlib.suppress(OSError):
            _call("capset", header, bytes(24))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_DUMPABLE, 0)


def set_limits(memory: int, file_size: int, processes: int, seconds: int) -> None:
    """Limit this process and what it starts."""
    for name, value in (
        ("RLIMIT_AS", memory),
        ("RLIMIT_FSIZE", file_size),
        ("RLIMIT_NPROC", processes),
        ("RLIMIT_NOFILE", 256),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_CPU", seconds),
        ("RLIMIT_MSGQUEUE", 0),
        ("RLIMIT_MEMLOCK", 0),
    ):
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            value = min(value, most)
        with contextlib.suppress(OSError, ValueError):  # macOS refuses some
            resource.setrlimit(kind, (value, value))


def refuse_system_calls() -> bool:
    """Refuse `REFUSED`, new namespaces, and every socket but local ones; return whether it took."""
    known = ARCHITECTURES.get(platform.machine())
    if not LINUX or known is None:
        return False
    program = _filter(*known)
    instructions = ctypes.create_string_buffer(program)
    pointer = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(instructions))
    return _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(pointer))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """End when the parent ends."""
    _prctl(PR_SET_PDEATHSIG, 9)


def _filter(column: int, architecture: int) -> bytes:
    """Return a program for the kernel's packet filter that looks at number and arguments."""
    load, jump_equal, jump_above, jump_any, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    def when_equal(value: int, *then: bytes) -> list[bytes]:
        return [step(jump_equal, value, 0, len(then)), *then]

    number, architecture_at, argument = 0, 4, 16
    steps = [
        step(load, architecture_at),
        # Another architecture's numbers mean other calls: refuse them all.
        step(jump_equal, architecture, 1, 0),
        step(answer, refuse | ENOSYS),
        step(load, number),
        step(jump_above, X32, 0, 1),
        step(answer, refuse | ENOSYS),
    ]
    for numbers in REFUSED.values():
        steps += when_equal(numbers[column], step(answer, refuse | EPERM))
    # clone3 hides its flags in memory; told that it does not exist, callers use clone.
    steps += when_equal(CLONE3[column], step(answer, refuse | ENOSYS))
    steps += when_equal(
        CLONE[column],
        step(load, argument),
        step(jump_any, ANY_NEW_NAMESPACE, 0, 1),
        step(answer, refuse | EPERM),
        step(answer, allow),
    )
    # Of limits a process may set its own, not those of a copy that is still to be examined.
    steps += when_equal(
        PRLIMIT[column],
        step(load, argument),
        step(jump_equal, 0, 1, 0),
        step(answer, refuse | EPERM),
        step(answer, allow),
    )
    steps += when_equal(
        SOCKET[column],
        step(load, argument),
        step(jump_equal, AF_UNIX, 1, 0),
        step(answer, refuse | EAFNOSUPPORT),
        step(answer, allow),
    )
    return b"".join([*steps, step(answer, allow)])


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if not LINUX:
        raise OSError(ENOSYS, f"no {name} on this system")
    converted = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments]
    if getattr(_library(), name)(*converted) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _prctl(option: int, *arguments: object) -> bool:
    if not LINUX:
        return False
    # All five are given: what stands in their place otherwise is not always zero.
    four = [*arguments, 0, 0, 0][:4]
    converted = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in four]
    return _library().prctl(option, *converted) == 0
