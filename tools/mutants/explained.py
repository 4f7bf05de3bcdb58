"""Mutants that no test can find, each with the reason: they decide as the code does."""

EXPLAINED: dict[str, str] = {
    "effects.routes_after: 0 -> 1": "the first placeholder for an id, any would do",
    "effects.routes_after: 1 -> 2": "a placeholder for an id, any that is free would do",
    "base.DeploymentHandler.classified: rollout.clock_stopped_at is not None -> nothing": (
        "a clock that runs is left as it is by `with_clock_running` too"
    ),
    "base.DeploymentHandler.execute: True -> False": "there is a decision for each deployment",
    "blue_green.BlueGreenStrategy.evaluate_cycle: 0 -> -1": "it is asked in a rollout alone",
    "transitions.Bounds: 0 -> 1": "without a limit of failures nobody counts them",
    "budget.worst_first: 1 -> 2": "any number below the others puts a state that nobody knows first",
    "steps.ends_at: 0 -> -1 (2)": "of this pair only the seconds are looked at",
    "simulator._change: 0.0 -> -1.0": "only what is above 0 is divided by",
    "errors.RollwayError.__init__: super().__init__(message) -> nothing": "an exception has its arguments before that",
    "errors: if TYPE_CHECKING -> if not": "what is imported there is for types alone",
    "scaling_decision._judge: (to - desired) * rule.step -> (to - desired) / rule.step": "only the sign is asked for",
    "scaling_decision._judge: 0 -> 1": "no rule has a step of 0",
    "scaling_decision._judge: rule.step < 0 -> rule.step <= 0": "no rule has a step of 0",
    "scaling_decision._limit: 0 -> -1": "no rule has a step of 0",
    "host_choice._fewest: 0 -> -1": "any number below 1 stands before those that have some",
    "rollout_plan._varied: 2.0 -> 3.0": "any two times that differ show whether their order matters",
    "rollout_plan._varied: 2.0 -> 3.0 (2)": "any two times that differ show whether their order matters",
    "rollout_plan: 80000 -> 80001": "how often it is run, give or take once",
    "revision.RevisionSpec.canonical_json: mode='json' -> nothing": "every value of a spec is JSON as it is",
    "settings.Settings.from_environment: 0 -> -1 (2)": "the path of a variable has one part",
    "storable._unstorable: 1 -> 2": "no depth is below 0",
    "errors: if TYPE_CHECKING -> nothing": "what is imported there is for types alone",
    "numbers: 60 -> 61": "either is far beyond the longest pause",
}
