"""The live page for people: what a browser gets from the server that services ask."""
