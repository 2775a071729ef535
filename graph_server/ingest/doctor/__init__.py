"""The doctor: what a dataset holds, what is wrong with it, and what a training on it would need. Changes nothing."""
