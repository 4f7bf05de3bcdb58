"""One supervised process: started, ready, watched, started again."""
