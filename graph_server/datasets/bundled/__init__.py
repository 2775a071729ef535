"""Datasets that come with the package: every `.npz` here is trained on by its name, without a path."""
