"""What nobody should send: texts, numbers and nestings that break what believes its input."""

from collections.abc import Sequence
from random import Random
from typing import Any

TEXTS: Sequence[str] = (
    "",
    " ",
    "web",
    "v1",
    "v2",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff\ud800",
    "\x1b]0;OWNED\x07\x1b[2J",
    "\x9b2J\x7f\r\n",
    "\u202e\u2028\ufeff",
    "Grüße 🚀",
    "ﷺ" * 300,
    "a" * 100_000,
    "9" * 400,
    "9" * 400 + "g",
    "1e400",
    "nan",
    "-inf",
    "0b_",
    "٣",
    "-1",
    "--json",
    "A=B",
    "'",
    "'; DROP TABLE deployments; --",
    "%s %(x)s {0} {x} $1 \\",
    "../../etc/passwd",
    "/",
    "localhost",
    "127.0.0.1",
    "*.com",
    "169.254.169.254:80",
    "[::1]:80",
    "10.0.0.1:99999",
    "2024-13-45",
    "00000000-0000-0000-0000-000000000000",
    "rolling_update",
    "50%",
    "101%",
    "99999999999999999999%",
)

NUMBERS: Sequence[float] = (
    0,
    -1,
    1,
    2,
    True,
    0.0004,
    -0.0,
    1e-300,
    1e23,
    1e308,
    float("nan"),
    float("inf"),
    2**31,
    2**63,
    10**30,
    10**400,
)


def hostile_text(dice: Random) -> str:
    return dice.choice(TEXTS)


def hostile(dice: Random) -> Any:
    """Anything that JSON can say, and some that it should not."""
    match dice.randrange(6):
        case 0 | 1:
            return hostile_text(dice)
        case 2:
            return dice.choice(NUMBERS)
        case 3:
            return dice.choice(("\0", "\ud800", {"\ud800": 1}, {"\0": 1}, float("nan"), 10**400))
        case 4:
            return dice.choice((None, [], {}, [[]], [""], {"": ""}, {"a": {"b": None}}))
        case _:
            return nested(dice.choice((1, 5, 21, 300)), dice)


def nested(levels: int, dice: Random) -> Any:
    value: Any = hostile_text(dice)
    for _ in range(levels):
        value = [value] if dice.random() < 0.5 else {"a": value}
    return value


def changed(value: Any, dice: Random) -> Any:
    """The same with one part replaced, added or left out."""
    if not isinstance(value, dict | list) or not value or dice.random() < 0.15:
        return hostile(dice)
    if isinstance(value, list):
        place = dice.randrange(len(value))
        return [*value[:place], changed(value[place], dice), *value[place + 1 :]]
    large = [name for name in sorted(value) if isinstance(value[name], dict | list)]
    name = dice.choice([*sorted(value), *large, *large])
    match dice.randrange(8):
        case 0:
            return {**value, hostile_text(dice): hostile(dice)}
        case 1:
            return {key: item for key, item in value.items() if key != name}
        case _:
            return {**value, name: changed(value[name], dice)}
