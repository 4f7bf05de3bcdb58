"""The messages through Redis: queues, their envelopes, and the keys that sign them."""
