"""Routes and hosts, as the workers that run replicas see and report them."""
