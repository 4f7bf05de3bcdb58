"""Cuts the past: the rule of `domain.installation.settings` in SQL, and the cut in small transactions."""
