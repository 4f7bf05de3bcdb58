"""A worker and a beat: their parts, connections and installation."""
