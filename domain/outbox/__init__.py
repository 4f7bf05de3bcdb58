"""Tells subscribers: which transitions are events, how one is written and signed, and when it is sent again."""
