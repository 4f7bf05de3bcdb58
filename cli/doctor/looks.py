"""Looks for what the doctor is asked, in pieces, each a short transaction: no statement is long whatever there is."""

import sys
from collections.abc import Iterator
from dataclasses import asdict

from redis.exceptions import RedisError
from sqlalchemy import Engine

from cli.doctor.question import Findings
from cli.show import signs
from cli.terminal.notes import look_at_redis
from cli.terminal.output import printer
from db.audit.impossible import Finding, all_chains, impossible_combinations
from db.audit.replay import ReplayReport, replay_pages
from db.connection.engine import in_transaction
from db.views.fleet.settings import SubscriptionView, all_subscriptions
from db.views.fleet.signs import signs_of_life
from tasks.redis.aside import how_many_aside, last_aside
from tasks.worker.connections import redis_client


def impossible_states(engine: Engine) -> Findings:
    """Rows that no transaction of ours leaves behind."""
    return _audited(in_transaction(engine, impossible_combinations), "impossible states")


def receipts(engine: Engine) -> Findings:
    """Receipts that are not what was sealed, or are gone."""
    return _audited(list(all_chains(engine)), "receipts broken")


def _audited(findings: list[Finding], what: str) -> Findings:
    sentences = [f"{finding.deployment}: {finding.sentence} ({finding.code})" for finding in findings]
    return Findings(sentences, f"{len(findings)} {what}", {"findings": [asdict(finding) for finding in findings]})


def replayed(engine: Engine) -> Findings:
    """Every recorded decision, page by page, with their number on a terminal meanwhile."""
    report = ReplayReport()
    with printer(stderr=True, quiet=not sys.stderr.isatty()).status("replaying decisions") as status:
        for page in replay_pages(engine):
            report += page
            status.update(f"{report.equal:,} decisions replayed")
    differing = [str(step) for step in report.differing]
    counts = f"{report.equal} decisions replayed, {len(differing)} differ"
    document = {"replayed": report.equal, "failed_writes": report.failed_writes, "differing": differing}
    return Findings(differing, counts, document)


def silent_redis(_: Engine) -> Findings:
    """A Redis that does not answer."""
    try:
        look_at_redis()
    except RedisError:
        return Findings(["Redis does not answer, so nobody knows which messages were put aside"])
    return Findings()


def messages_aside(_: Engine) -> Findings:
    """The messages that did not fit, which workers have put aside; null in the document where Redis is silent."""
    try:
        count, last = how_many_aside(redis_client()), last_aside(redis_client())
    except RedisError:
        return Findings(document={"aside": None})
    document = {"aside": {"count": count, "last": [asdict(message) for message in last]}}
    if not last:
        return Findings(document=document)
    put = f"{count} messages were put aside because they did not fit, the last of queue {last[0].queue}:"
    return Findings([f"{put}\n  {last[0].at.isoformat()}: {last[0].why}"], document=document)


def untold_events(engine: Engine) -> Findings:
    """The events that were given up, or that are tried again."""
    subscriptions = in_transaction(engine, all_subscriptions)
    document = {"subscriptions": [asdict(subscription) for subscription in subscriptions]}
    return Findings([sentence for view in subscriptions for sentence in _untold(view)], document=document)


def _untold(view: SubscriptionView) -> Iterator[str]:
    if view.given_up:
        yield f"{view.given_up} events were given up that {view.name} should have had; the last: {view.why}"
    elif view.waiting and view.why:
        yield f"{view.waiting} events wait for {view.name}: {view.why}"


def missing_walls(engine: Engine) -> Findings:
    """The hosts where replicas run as the workers' own user, and what stands in the way of another."""
    found = list(signs.missing_walls(in_transaction(engine, signs_of_life)))
    return Findings(found, document={"unwalled": found})
