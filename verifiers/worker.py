"""The worker side of the pool: a warm template process, and the workers that it forks.

Started as `python -m verifiers.worker FD`, never forked from the service: the service has threads, and a fork of a
threaded process can deadlock. The template has one thread and all heavy imports, so a fork of it takes milliseconds.
It ends when its control socket closes; its workers end with it (parent-death signal), also in the middle of a case.
"""

import gc
import importlib
import logging
import os
import resource
import signal
import socket
import sys
import time
from typing import Any

from verifiers.contract import Case, Context, Finding, Outcome, Verdict
from verifiers.registry import VERIFIERS
from verifiers.wire import decode_case, encode_finding, receive, send

MEMORY_BYTES = 1536 * 1024 * 1024
CPU_SECONDS_A_CASE = 5
"""Second net under the parent's deadline, should the parent be stopped."""

_PR_SET_PDEATHSIG = 1


def main(control_fd: int) -> None:
    """Fork a worker for each descriptor that comes over the control socket; answer with its process id."""
    control = socket.socket(fileno=control_fd)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    logging.disable(logging.CRITICAL)  # libraries would log candidate text, and that their timers are off
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle
    for module in VERIFIERS.values():
        for warmed in getattr(module, "warm_imports", ()):
            importlib.import_module(warmed)
        getattr(module, "warm", lambda: None)()
    gc.collect()
    gc.freeze()  # shared pages stay shared
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not message or not descriptors:
            return
        template = os.getpid()
        child = os.fork()
        if child == 0:
            control.close()
            _serve_and_exit(descriptors[0], template)
        os.close(descriptors[0])
        control.sendall(child.to_bytes(8, "big"))


def _serve_and_exit(descriptor: int, template: int) -> None:
    code = 1
    try:
        _die_with(template)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _serve(socket.socket(fileno=descriptor))
        code = 0
    finally:
        os._exit(code)  # never return into the template's loop


def _die_with(template: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != template:
        os._exit(1)  # it died before the signal was armed


def _serve(link: socket.socket) -> None:
    while True:
        try:
            chunk = receive(link)
        except EOFError:
            return
        for data in chunk:
            send(link, _judged(data))


def _judged(data: dict[str, Any]) -> dict[str, Any]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = int(used.ru_utime + used.ru_stime) + CPU_SECONDS_A_CASE
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))
    started, cpu = time.perf_counter(), time.process_time()
    try:
        finding = _found(decode_case(data))
    except MemoryError:
        return {"memory": True}
    verify_ms, cpu_ms = (time.perf_counter() - started) * 1e3, (time.process_time() - cpu) * 1e3
    return {"finding": encode_finding(finding), "verify_ms": verify_ms, "cpu_ms": cpu_ms}


def _found(case: Case) -> Finding:
    context = Context(None, case.limits, case.image, case.files, case.seed, _no_parts)
    try:
        return VERIFIERS[case.verifier].verify(case.response, case.reference, case.params, context)
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 the boundary; math-verify's timeouts are BaseExceptions
        return Finding(Outcome.VERIFIER_ERROR, "crash", type(error).__name__)


def _no_parts(case: Case) -> Verdict:
    raise RuntimeError("a verifier in a worker has no parts")


if __name__ == "__main__":
    main(int(sys.argv[1]))
