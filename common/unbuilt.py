"""What the schema knows and this version does not do yet: one row per key. Building a part deletes its rows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Unbuilt:
    """A key that is refused when somebody sets it, unless the value is one that already works."""

    key: str
    part: str
    """What is missing, in words."""
    works: tuple[object, ...] = ()
    """Values that pass; empty: none does."""
    refused_prefix: str = ""
    """Refuse only text that begins so; `works` is then not looked at."""

    def refuses(self, value: object) -> bool:
        if self.refused_prefix:
            return isinstance(value, str) and value.startswith(self.refused_prefix)
        return value not in self.works


UNBUILT = (
    Unbuilt("dataset.path", "datasets on S3", refused_prefix="s3://"),
    Unbuilt("training.deterministic", "pinned CPU kernels", works=(False,)),
    Unbuilt("cluster.spot", "training on AWS", works=(False,)),
    Unbuilt("output.path", "results on S3", refused_prefix="s3://"),
)
