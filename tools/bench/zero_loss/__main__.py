"""`make zero-loss`: not one lost request, through rollouts and crashes; tools/bench/results/zero_loss.json has it all.

A stack of its own with Envoy in a temporary folder, a service of tools/bench/replica.py, an open-loop load, and then:
a rolling update, a blue-green promotion, a canary that its judge promotes and one that it aborts, an abort, a broken
revision, scaling, a restart of the stack, another supervisor for it and a restart of Envoy, workers, Redis, Postgres,
the xDS server, a replica and a canary's only one killed with -9, and these two frozen. At last, for comparison, the
same replicas restarted by hand. Exit code 0 only when no request failed but those that the aborted canary answered, and
those in flight on the replica that was killed or hung, and not idempotent.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from cli.demo.load.mix import LONGEST_REQUEST
from cli.demo.stage import open_stage
from cli.terminal.exits import UnreachableError, interruptible
from tests.support.stack.waiting import NotInTimeError
from tools.bench.load import LoadError
from tools.bench.zero_loss.phases import PHASES
from tools.bench.zero_loss.play import Recording, Setting, play
from tools.bench.zero_loss.service import ScenarioError
from tools.bench.zero_loss.show import Result, show, write
from tools.bench.zero_loss.verdict import drains_within, judge

RESULT = Path("tools/bench/results/zero_loss.json")


def main() -> int:
    """Run, print and write down; the exit code."""
    arguments = _parse()
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)  # servers that are killed are its own
    console = Console(width=None if sys.stdout.isatty() else 160)
    phases = [phase for phase in PHASES if not arguments.only or phase.name in arguments.only]
    given = (arguments.rate, arguments.seconds, arguments.seed, arguments.replicas, arguments.longest)
    setting = Setting(*given, patience=arguments.patience, traefik=arguments.traefik)
    if arguments.tls:
        setting = replace(setting, certificates=Path(tempfile.mkdtemp(prefix="rollway-certificates-")))
        os.environ["ROLLWAY_SECRETS_ALLOW"] = f"file:{setting.certificates}"
    begun = time.monotonic()
    try:
        with interruptible(), open_stage(console, arguments.envoys) as stage:
            console.print(f"{setting.rate:,.0f} requests a second to {setting.replicas} replicas:")
            recording = play(stage.home, phases, setting, console.print)
            result = _result(setting, recording, begun)
            stage.keep = not result.kept
    except (ScenarioError, LoadError, NotInTimeError, UnreachableError) as error:
        console.print(f"✗ {error}", style="red")
        return 1
    if stage.leftovers:
        console.print(f"✗ still running: {', '.join(stage.leftovers)}", style="red")
    write(result, arguments.result)
    show(result, console)
    if stage.keep:
        console.print(f"The logs are in {stage.logs}")
    return 0 if result.kept and not stage.leftovers else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make zero-loss", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=1000, help="requests a second (1000)")
    parser.add_argument("--seconds", type=float, default=14, help="for each phase, at least (14)")
    parser.add_argument(
        "--only", nargs="*", choices=[phase.name for phase in PHASES], help="some phases, in their order"
    )
    parser.add_argument("--longest", type=float, default=LONGEST_REQUEST, help="seconds of a slow request (3)")
    parser.add_argument("--patience", type=float, default=10, help="seconds until an answer counts as lost (10)")
    parser.add_argument("--traefik", action="store_true", help="callers come through a Traefik in place of Envoy")
    parser.add_argument("--tls", action="store_true", help="callers come by HTTPS")
    parser.add_argument("--envoys", type=int, default=1, choices=(1, 2), help="that share a port (1)")
    parser.add_argument("--seed", type=int, default=1, help="of the plan of requests (1)")
    parser.add_argument("--replicas", type=int, default=4, help="of the service (4)")
    parser.add_argument("--result", type=Path, default=RESULT, help=f"where the JSON goes ({RESULT})")
    return parser.parse_args()


def _result(setting: Setting, recording: Recording, begun: float) -> Result:
    by_name = {phase.name: phase for phase in recording.load.phases}
    verdicts = [judge(played, by_name[played.phase.name], recording.drains) for played in recording.played]
    planned = [by_name[played.phase.name] for played in recording.played if not played.phase.fault]
    in_faults = [by_name[played.phase.name] for played in recording.played if played.phase.fault]
    return Result(
        rate=setting.rate,
        seed=setting.seed,
        replicas=setting.replicas,
        phases=tuple(verdicts),
        drains_planned=drains_within(planned, recording.drains),
        drains_in_faults=drains_within(in_faults, recording.drains),
        generator_cpu_seconds=recording.load.cpu_seconds,
        seconds=time.monotonic() - begun,
    )


if __name__ == "__main__":
    sys.exit(main())
