"""What is kept in Redis: lock slots and wakes."""
