"""Builds, releases and grades the course on the geometry of attention."""
