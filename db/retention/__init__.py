"""Cuts the past: the rule of `domain.installation.retention` in SQL, and the cut in small transactions."""
