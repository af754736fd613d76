"""Gaussian beliefs: the frame, diagonal and full covariances, encodings."""
