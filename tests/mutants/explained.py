"""Mutants that no test can find, each with the reason: they decide as the code does."""

EXPLAINED: dict[str, str] = {
    "judging._judge: rule.step < 0 -> rule.step <= 0": "no rule has a step of 0",
    "judging._judge: 0 -> 1": "no rule has a step of 0",
    "judging._judge: (to - desired) * rule.step -> (to - desired) / rule.step": "only the sign is asked for",
    "base.DeploymentHandler.classified: rollout.clock_stopped_at is not None -> nothing": (
        "a clock that runs is left as it is by `with_clock_running` too"
    ),
    "revision.RevisionSpec.canonical_json: mode='json' -> nothing": "every value of a spec is JSON as it is",
    "settings.Settings.from_environment: 0 -> -1 (2)": "the path of a variable has one part",
    "base.DeploymentHandler.execute: True -> False": "there is a decision for each deployment",
    "bounds.Bounds: 0 -> 1": "without a limit of failures nobody counts them",
    "blocked.min_ready_of: 0 -> -1 (2)": "nothing has been healthy for less than no time",
    "after.routes_after: 0 -> 1": "the first placeholder for an id, any would do",
}
