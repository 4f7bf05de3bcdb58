"""One pass of a handler: claim, load, write."""
