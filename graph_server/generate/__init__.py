"""Made-up graphs of any size: what they are drawn from, and how they are written."""
