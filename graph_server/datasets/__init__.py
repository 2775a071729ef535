"""Datasets: one file per on-disk format in `formats/`, and the policies every format goes through."""
