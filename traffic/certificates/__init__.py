"""Certificates: their contents, the sealing of their keys, and the authority that issues them."""
