"""One pass of a handler over what is marked, and what is told of it."""
