"""The periodic job `service.housekeeping`: what has expired is deleted, a part at a time."""

from factory.runner import Progress, Steps, Work
from service.store import workers
from service.store.session import WriteSession


def housekeeping(work: Work) -> Steps:
    """Delete workers that have been silent for a day."""

    def write(db: WriteSession) -> Progress:
        return Progress({}, {"workers": workers.forget_silent(db)})

    yield write
    return {}
