"""Graphs whose edges do not fit in memory: sorted on disk, cut, and written as graph folders."""
