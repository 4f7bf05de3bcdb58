"""Keeps what subscriptions are still to be told: written where it happens, claimed to be sent."""
