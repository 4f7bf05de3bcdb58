"""The documents of `rollway apply`, and the commands that they become."""
