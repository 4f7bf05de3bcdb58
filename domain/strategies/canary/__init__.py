"""The canary: its ladder, its steps, and what its judge says."""
