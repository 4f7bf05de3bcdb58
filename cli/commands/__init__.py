"""The commands of `rollway`, a file for each family."""
