"""Learns how rollouts of a service have gone, and rehearses the next one."""
