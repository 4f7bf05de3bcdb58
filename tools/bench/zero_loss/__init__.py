"""The proof that nothing is lost: a load through Envoy while everything that can happen happens."""
