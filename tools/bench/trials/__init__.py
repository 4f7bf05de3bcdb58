"""Rollouts through real proxies: what a judge, or nobody's answers, make of revisions that fail in some way."""
