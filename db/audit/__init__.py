"""What no transaction of ours leaves behind, and stored decisions made again."""
