"""Makes plans in processes of their own, which end with whoever asked."""
