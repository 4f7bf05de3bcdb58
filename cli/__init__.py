"""The `rollway` command line."""
