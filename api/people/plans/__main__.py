"""`python -m api.people.plans`: makes plans for the server that started it, until its input ends.

Only the domain is loaded, so that a new process is ready soon. The server ends one whose plan nobody waits for.
"""

import json
import os
import pickle
import signal
import sys
import time
from random import Random
from typing import Any

from api.people.plans.workers import ANSWER, QUESTION, AskedPlan
from domain.planning.rollout_plan import plan

_NICE = 10
"""The lowest priority: requests go first, and on a shared machine its workers."""


def main() -> None:
    """Answer each question in turn."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    source, output = sys.stdin.buffer, sys.stdout.buffer
    while head := source.read(QUESTION.size):
        questions: list[AskedPlan] = pickle.loads(source.read(*QUESTION.unpack(head)))  # noqa: S301  (of our own server)
        began = time.process_time()
        answer = json.dumps([_answer(question) for question in questions], ensure_ascii=False).encode()
        output.write(ANSWER.pack(time.process_time() - began, len(answer)) + answer)
        output.flush()


def _answer(question: AskedPlan) -> dict[str, Any]:
    """Return the plan. The same question gets the same answer."""
    planned = question.planned
    chance = Random(f"{question.deployment} {question.revision} 0").random  # noqa: S311  (not for secrets)
    return {**question.extras, **plan(planned.subject, planned.now, planned.timings, chance).as_json()}


if __name__ == "__main__":
    main()
