"""Heads of answers that proxies refuse, so that callers get 502 of an answer that other clients take."""

import re

MOST_HEADER_LINES = 256
MOST_HEADER_KIB = 96
"""The largest head that a request and an answer may have."""

_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_END, _FOLDED = re.compile(rb"\r?\n"), re.compile(rb"\r?\n(?=[ \t])")
_NO_CONTENT = b"204"


def refusal_of(head: bytes) -> str:
    """What makes Envoy refuse an answer in HTTP/1.1, as a clause about it; empty where it takes it.

    `head`: the bytes up to its empty line. Heads of 1xx before it are left out.
    """
    first, *lines = _LINE_END.split(_FOLDED.sub(b"", head))
    if len(lines) > MOST_HEADER_LINES:
        return f"it has {len(lines)} header lines, and {MOST_HEADER_LINES} may be"
    if len(head) > MOST_HEADER_KIB * 1024:
        return f"its header lines are {len(head) // 1024} KiB, and {MOST_HEADER_KIB} may be"
    headers: list[tuple[bytes, bytes]] = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not (colon and _NAME.fullmatch(name)):
            return f"{line[:40].decode('latin-1')!r} is no header line"
        if _CONTROL.search(value):
            return f"the value of {name.decode()} has a control character"
        headers.append((name, value.strip(b" \t")))
    return _framing(first, headers)


def _framing(first: bytes, headers: list[tuple[bytes, bytes]]) -> str:
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value for name, value in headers if name.lower() == b"transfer-encoding"]
    match lengths, codings:
        case [[_, _, *_], _]:
            return "it has two Content-Length"
        case [[length], _] if not length.isdigit():
            return f"its Content-Length is {length.decode('latin-1')!r}, and may only be digits"
        case [[_], [_, *_]]:
            return "it has both Content-Length and Transfer-Encoding"
        case [_, [_, _, *_]]:
            return "it has two Transfer-Encoding"
        case [_, [coding]] if coding.lower() != b"chunked":
            return f"its Transfer-Encoding is {coding.decode('latin-1')!r}, and may only be chunked"
        case [_, [_]] if first.split(b" ")[1:2] == [_NO_CONTENT]:
            return "it is 204, which has no body, and has Transfer-Encoding"
    return ""
