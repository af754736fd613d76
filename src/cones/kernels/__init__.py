"""Low-level helpers: threads, spans of vectors, buffers."""
