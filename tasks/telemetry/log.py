"""Log lines of workers and beat: one line each, key=value, to standard error."""

import logging
import sys

import structlog
from structlog.typing import Processor

_PLAIN: list[Processor] = [
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logging(level: int | None = None) -> None:
    """Send structlog's and the standard library's records through one formatter."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *_PLAIN,
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderer = structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "logger", "event"])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_PLAIN,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level or logging.INFO)
    logging.getLogger("celery.app.trace").setLevel(logging.WARNING)
    logging.getLogger("celery.worker.strategy").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
