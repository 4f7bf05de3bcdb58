"""Files for `rollway apply`: good ones with a few things that YAML, or nobody, understands."""

import json
import re
from collections.abc import Callable, Sequence
from random import Random

from tests.fuzz.hostile import TEXTS
from tests.fuzz.world import World, obeyed

FILES: Sequence[str] = (
    """
deployment: web
replicas: 2
revision:
  name: v3
  command: [serve, --fast]
  env: {VERSION: "1"}
  working_directory: app
  health_check: {path: /up, interval_seconds: 1, timeout_seconds: 0.5}
  drain_seconds: 1.5
policy:
  strategy: rolling_update
  spec: {max_surge: 1, max_unavailable: 25%, min_ready_seconds: 3}
  limits: {timeout_seconds: 300, failure_budget: 3}
traffic:
  hosts: [web.example.com, "*.example.com"]
  path_prefix: /api/
  request_timeout_seconds: 30
activate: true
""",
    """
deployment: gpu
revision:
  runtime: docker
  docker:
    image: web:1
    port: 80
    resources: {memory: 512m, cpus: 1.5, gpus: all}
    volumes: {/a: /b}
    labels: {team: search}
    network: web
policy: {strategy: blue_green, spec: {auto_promote: true, scale_down_delay_seconds: 5}}
---
deployment: fleet
revision: {runtime: external, external: {webhook: "https://example.com/replicas"}}
policy: null
activate: false
""",
)

VALUES: Sequence[str] = (
    "9" * 5000,
    "2024-13-45",
    "2024-02-30T25:61:61Z",
    "0001-01-01T00:00:00+99:99",
    "!!int abc",
    "!!float x",
    "!!bool x",
    "!!null x",
    "!!timestamp x",
    "!!map x",
    "!!set x",
    "!!omap x",
    "!!pairs x",
    "!!binary ä",
    "!!python/object:os.system x",
    "!<tag:yaml.org,2002:int> x",
    "!mine x",
    "0b_",
    "0x_",
    "0o9",
    "190:20:30",
    ".nan",
    "-.inf",
    "1e400",
    '"\\U00110000"',
    '"\\UFFFFFFFF"',
    '"\\ud800"',
    '"\\0"',
    '"\\e]0;OWNED\\a"',
    "[" * 1000,
    "{a: " * 300,
    "&a [*a]",
    "&a {b: *a}",
    "*nothing",
    "<<: 1",
    "{<<: [1]}",
    "{'': x}",
    "{A=B: x}",
    "{1: 2}",
    "{null: 1}",
    "{2024-01-01: 1}",
    "{? [a]: b}",
    "{? {a: b}: c}",
    "{1.5: x, true: y}",
    "2024-01-01",
    "~",
    "- x",
    "|",
    "|99",
    "? x",
    "@",
    "`",
    "%",
    "'",
    "\t",
    "---",
    "...",
)


def _value(text: str, dice: Random) -> str:
    return _in_place_of(r"(?<=: )[^\n{}\[\]]+", text, dice.choice(VALUES), dice)


def _plain_value(text: str, dice: Random) -> str:
    said = dice.choice(TEXTS)
    return _in_place_of(r"(?<=: )[^\n{},\[\]]+", text, dice.choice((said, json.dumps(said))), dice)


def _name(text: str, dice: Random) -> str:
    return _in_place_of(r"\b\w+(?=:)", text, dice.choice((*VALUES, *TEXTS)), dice)


def _line(text: str, dice: Random) -> str:
    lines = text.split("\n")
    place = dice.randrange(len(lines))
    match dice.randrange(4):
        case 0:
            lines.insert(place, dice.choice((*VALUES, *lines)))
        case 1:
            del lines[place]
        case 2:
            lines[place] = " " * dice.randrange(9) + lines[place].strip()
        case _:
            lines.insert(place, f"%YAML {'9' * dice.choice((1, 5000))}.1")
    return "\n".join(lines)


def _character(text: str, dice: Random) -> str:
    place = dice.randrange(len(text))
    return text[:place] + dice.choice(":{}[]&*!|>'\"%@`#-?,\0\x1b\ud800\ufeff\u2028 ") + text[place + 1 :]


_CHANGES: Sequence[Callable[[str, Random], str]] = (
    _value,
    _value,
    _plain_value,
    _plain_value,
    _plain_value,
    _name,
    _line,
    _character,
)


def _in_place_of(pattern: str, text: str, said: str, dice: Random) -> str:
    places = list(re.finditer(pattern, text))
    if not places:
        return said
    place = dice.choice(places)
    return text[: place.start()] + said + text[place.end() :]


def hostile_file(dice: Random) -> bytes:
    text = dice.choice(FILES)
    for _ in range(dice.randint(1, 3)):
        text = dice.choice(_CHANGES)(text, dice)
    return text.encode("utf-8", errors=dice.choice(("replace", "surrogatepass")))


def apply_file(world: World, dice: Random) -> None:
    """`rollway apply` of one file: done, or refused in one line."""
    content = hostile_file(dice)
    path = world.folder / "fuzz.yaml"
    path.write_bytes(content)
    with world.unchanged_by_a_refusal() as outcome:
        said = world.rollway(["apply", "-f", str(path)])
        outcome.refused = said.code != 0
    assert said.code in (0, 1, 2), (said, content)
    assert obeyed(said.out + said.err) == set(), (said, content)
    assert not outcome.refused or said.err.count("\n") == 1, (said, content)
