"""Text from elsewhere, made fit to be stored and shown."""

import re

# a tab and a line's end are the only control characters that mean something in a reason or in a log
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def storable(text: str) -> str:
    r"""The text as Postgres, UTF-8 and a terminal take it: what they refuse or obey becomes U+FFFD.

    Postgres stores no NUL, UTF-8 has no lone surrogate, and a terminal obeys control characters.

    "bye\0bye"      -> "bye\ufffdbye"
    "50%\r100%\r\n" -> "50%\n100%\n"
    """
    return _UNFIT.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
