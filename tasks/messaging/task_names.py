"""The tasks that a worker knows: commands, queries and ticks."""

from domain.commands.base import QUERIES
from domain.commands.registry import COMMANDS
from tasks.messaging.queues import ALARM_TASK, AUDIT_TASK, DO_IF_NEEDED_TASK, DO_ROUTE_TASK, DO_TASK, RETENTION_TASK

ANSWERED = frozenset((*COMMANDS, *QUERIES))
"""Tasks whose senders wait for an answer."""

TASKS = frozenset((*ANSWERED, DO_TASK, DO_IF_NEEDED_TASK, DO_ROUTE_TASK, ALARM_TASK, AUDIT_TASK, RETENTION_TASK))
"""What a worker does. Celery brings tasks of its own, which nobody here has a use for."""
