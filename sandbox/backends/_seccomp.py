"""The deny list of system calls as a classic BPF program, assembled here: no compiler and no library is needed.

Denied calls fail with EPERM. `clone3` fails with ENOSYS because its flags are in memory that a filter cannot read; the
C library then falls back to `clone`, whose namespace flags are checked. Other architectures' entry points are refused.

Not covered: what an allowed call does with its pointer arguments; namespaces and lost capabilities bound those.
"""

import errno
import platform
import struct

ALLOW, REFUSE = 0x7FFF0000, 0x00050000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NR, ARCH, ARG0 = 0, 4, 16
X32_BIT = 0x40000000
NAMESPACE_FLAGS = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. (NEWTIME shares bits with the exit signal.)"""
FAMILIES = (16, 17, 38, 40)
"""AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK: the last reaches a hypervisor's services past the network namespace."""

SAME_EVERYWHERE = (
    *range(425, 434),  # io_uring_setup, _enter, _register, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick
    438,  # pidfd_getfd
    442,  # mount_setattr
    443,  # quotactl_fd
    467,  # open_tree_attr
)
X86_64 = (
    *(101, 155, 161, 163, 164),  # ptrace, pivot_root, chroot, acct, settimeofday
    *(165, 166, 167, 168, 169),  # mount, umount2, swapon, swapoff, reboot
    *(172, 173, 175, 176, 179),  # iopl, ioperm, init_module, delete_module, quotactl
    *(227, 246, 248, 249, 250, 272, 298, 303, 304),  # clock_settime, kexec_load, keys, unshare, perf, handles
    *(308, 310, 311, 312, 313, 320, 321, 323),  # setns, process_vm_*, kcmp, finit_module, kexec_file, bpf, userfaultfd
)
AARCH64 = (
    *(117, 41, 51, 89, 170),  # ptrace, pivot_root, chroot, acct, settimeofday
    *(40, 39, 224, 225, 142),  # mount, umount2, swapon, swapoff, reboot
    *(105, 106, 60),  # init_module, delete_module, quotactl
    *(112, 104, 217, 218, 219, 97, 241, 264, 265),  # clock_settime, kexec_load, keys, unshare, perf, handles
    *(268, 270, 271, 272, 273, 294, 280, 282),  # setns, process_vm_*, kcmp, finit_module, kexec_file, bpf, userfaultfd
)
OWN_ONLY_X86_64 = {302: (0,), 144: (0,), 142: (0,), 314: (0,), 141: (0, 1)}
OWN_ONLY_AARCH64 = {261: (0,), 119: (0,), 118: (0,), 274: (0,), 140: (0, 1)}
"""prlimit64, sched_setscheduler, sched_setparam, sched_setattr, setpriority, and their arguments that must be 0, which
means the caller itself: process 1 has the same uid, and a CPU limit set on it would end it with our own signal."""
MACHINES = {
    "x86_64": (0xC000003E, X86_64, OWN_ONLY_X86_64, 41, 56),
    "aarch64": (0xC00000B7, AARCH64, OWN_ONLY_AARCH64, 198, 220),
}
CLONE3 = 435


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def program(machine: str | None = None) -> bytes | None:
    """The filter for a machine (this one by default); None where no table exists for it."""
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    audit_arch, denied, own_only, socket_nr, clone_nr = known
    refuse = _step(RETURN, REFUSE | errno.EPERM)
    steps = [_step(LOAD, ARCH), _step(EQUAL, audit_arch, 1, 0), refuse, _step(LOAD, NR)]
    steps += [_step(AT_LEAST, X32_BIT, 0, 1), refuse]
    for number in sorted((*denied, *SAME_EVERYWHERE)):
        steps += [_step(EQUAL, number, 0, 1), refuse]
    steps += [_step(EQUAL, CLONE3, 0, 1), _step(RETURN, REFUSE | errno.ENOSYS)]
    for number, arguments in own_only.items():
        block = []
        for argument in arguments:
            block += [_step(LOAD, ARG0 + 8 * argument), _step(EQUAL, 0, 1, 0), refuse]
        steps += [_step(EQUAL, number, 0, len(block) + 1), *block, _step(RETURN, ALLOW)]
    # Each block is skipped whole unless the number matches; arguments are read as their low 32 bits.
    steps += [_step(EQUAL, clone_nr, 0, 4), _step(LOAD, ARG0), _step(ANY_BIT, NAMESPACE_FLAGS, 0, 1), refuse]
    steps += [_step(RETURN, ALLOW)]
    steps += [_step(EQUAL, socket_nr, 0, 2 + 2 * len(FAMILIES)), _step(LOAD, ARG0)]
    for family in FAMILIES:
        steps += [_step(EQUAL, family, 0, 1), refuse]
    steps += [_step(RETURN, ALLOW), _step(RETURN, ALLOW)]
    return b"".join(steps)
