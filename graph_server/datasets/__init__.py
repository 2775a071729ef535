"""One file per on-disk format, each with LOOKS_FOR, DEFAULTS, detect, read and an example."""
