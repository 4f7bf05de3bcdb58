"""What is kept in Redis: lock slots, wakes, and messages that were put aside."""
