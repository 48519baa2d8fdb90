"""A child leaves when its supervisor is gone, even by SIGKILL: it reads a pipe whose other end dies with the parent."""

import os
import signal
import threading


def follow(descriptor: int) -> None:
    """Send this process SIGTERM once the other end of the pipe is closed."""

    def wait() -> None:
        while os.read(descriptor, 1):  # the supervisor never writes: this ends at end-of-file alone
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
