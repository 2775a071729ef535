"""One file per on-disk format, each with LOOKS_FOR, DEFAULTS, detect and read; `base.py` is what a reader hands over."""
