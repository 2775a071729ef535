"""One file per on-disk format.

A format is a module with `LOOKS_FOR` (a sentence for the error when nothing matches), `DEFAULTS` (see `defaults.py`),
`detect(path) -> bool` (by content, cheap, never raises) and `read(path, options) -> RawGraph`.
"""
