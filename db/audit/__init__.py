"""Finds what no transaction of ours leaves behind, and makes stored decisions again."""
