"""Where something comes in from outside, and how each place is thrown at: the list that `make soak` goes through."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from tests.fuzz.command_lines import run_line, run_process
from tests.fuzz.http_requests import send_request
from tests.fuzz.messages import put_message
from tests.fuzz.payloads import send_payload
from tests.fuzz.streams import send_stream
from tests.fuzz.world import World
from tests.fuzz.yaml_files import apply_file


@dataclass(frozen=True, slots=True)
class Surface:
    """`throw` sends one input, made from the dice alone, and raises AssertionError when it breaks a law.

    `quick`: how many inputs in `make test`. `share`: of all inputs of `make soak`.
    """

    throw: Callable[[World, Random], None]
    quick: int
    share: float


SURFACES: Mapping[str, Surface] = {
    "yaml": Surface(apply_file, quick=60, share=0.35),
    "command_lines": Surface(run_line, quick=40, share=0.15),
    "processes": Surface(run_process, quick=4, share=0.01),
    "payloads": Surface(send_payload, quick=400, share=0.2),
    "messages": Surface(put_message, quick=200, share=0.19),
    "http": Surface(send_request, quick=30, share=0.05),
    "streams": Surface(send_stream, quick=30, share=0.05),
}
