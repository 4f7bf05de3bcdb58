"""The ground: errors, numbers and text that every room uses."""
