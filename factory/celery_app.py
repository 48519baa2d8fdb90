"""The Celery app: it carries hints (one job id each), acknowledged early, and decides nothing.

A hint that is lost, doubled or late changes no result: the job row is what counts (`service/store/jobs.py`).
"""

from typing import Any

from celery import Celery, signals
from kombu.entity import Queue as BrokerQueue

from service.words import Queue

HINT_TASK = "taskmill.hint"
MEMORY = "memory://"
CEILING_S = 6 * 3600  # a net for faults of ours; deadlines of candidate code are the sandbox's

_REDIS = {
    "visibility_timeout": 600,
    "socket_timeout": 5,
    "socket_connect_timeout": 1,
    "health_check_interval": 25,  # a half-open connection is found within a minute
}
_AMQP = {"confirm_publish": True, "connect_timeout": 2, "read_timeout": 5, "write_timeout": 5}


def make_app(broker_url: str | None, *, prefix: str = "") -> Celery:
    """An app on this broker, or on the process's own memory. `prefix` keeps users of one broker apart."""
    url = broker_url or MEMORY
    app = Celery("taskmill", broker=url, set_as_current=False)
    app.conf.update(_settings(prefix), broker_transport_options=_transport(url))
    if not url.startswith(("redis", "memory")):
        app.conf.broker_heartbeat = 0  # hints only: a dead connection shows at the next one
    return app


def queue_name(queue: Queue, prefix: str) -> str:
    return f"{prefix}{queue}"


def _settings(prefix: str) -> dict[str, Any]:
    return {
        "task_acks_late": False,  # D15, D19: nothing holds a message while its job runs
        "task_reject_on_worker_lost": False,  # D17: it would put poison back for ever
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_default_queue": queue_name(Queue.CPU, prefix),
        "task_default_queue_type": "classic",
        "task_queues": [BrokerQueue(queue_name(queue, prefix)) for queue in Queue],  # type: ignore[no-untyped-call]
        "task_create_missing_queues": False,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_time_limit": CEILING_S,
        "worker_prefetch_multiplier": 1,
        "worker_max_tasks_per_child": 500,
        "worker_max_memory_per_child": 1536 * 1024,
        "worker_enable_remote_control": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_detect_quorum_queues": False,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_send_task_events": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_pool_acquire_timeout": 10,
        "enable_utc": True,
    }


def _transport(url: str) -> dict[str, Any]:
    if url.startswith("memory"):
        return {"polling_interval": 0.02}
    return dict(_REDIS if url.startswith("redis") else _AMQP)


def _logging_is_ours(**_: Any) -> None:
    """Its being connected is what keeps Celery's hands off the logging of the process."""


signals.setup_logging.connect(_logging_is_ours)
