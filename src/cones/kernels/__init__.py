"""Plumbing: threads, spans of vectors, buffers. No mathematics."""
