"""The wire through Redis: queues, messages, and who may send them."""
