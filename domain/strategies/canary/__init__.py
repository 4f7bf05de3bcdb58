"""The canary: its ladder, its steps, and its judge."""
