"""The generator's process. Speaks JSON lines: settings and commands come in, answers go out.

in   {"address": ..., "rate": ..., ...}     the first line: LoadSettings
out  {"ready": true}                        requests are being sent
in   {"do": "phase", "name": "..."}         requests due from now on belong to this phase
out  {"phase": "...", "at": Unix seconds}
in   {"do": "stop"}                         or the end of the input, or the end of its time
out  {"report": {...}}                      the last line: LoadReport
"""

import asyncio
import gc
import ipaddress
import json
import sys
import time

from pydantic import TypeAdapter

from bench.load.generator import Generator, LoadSettings
from bench.load.report import REPORT

_SETTINGS = TypeAdapter(LoadSettings)
_LINE_LIMIT = 2**20


async def main() -> None:
    """One run."""
    commands = await _standard_input()
    settings = _SETTINGS.validate_json(await commands.readline())
    host = settings.address.rpartition(":")[0]
    if not ipaddress.ip_address(host).is_loopback:
        sys.exit(f"{host} is not a loopback address; load is sent nowhere else")
    generator = Generator(settings)
    following = asyncio.create_task(_follow(commands, generator))
    gc.freeze()
    _say({"ready": True})
    report = await generator.run()
    following.cancel()
    _say({"report": REPORT.dump_python(report, mode="json")})


async def _follow(commands: asyncio.StreamReader, generator: Generator) -> None:
    while line := await commands.readline():
        match json.loads(line):
            case {"do": "phase", "name": str(name)}:
                generator.begin_phase(name)
                _say({"phase": name, "at": time.time()})
            case {"do": "stop"}:
                break
    generator.stop()


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=_LINE_LIMIT)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _say(words: dict[str, object]) -> None:
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
