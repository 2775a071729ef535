"""Where a job's data is, whether it is there, and which graph folder it becomes.

A graph folder is named by what it is made from: the objects' checksums, how they are read, how they are cut. A second
job on the same data finds it, and starts without a cutter.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

from common.cloud_names import DATASETS, GRAPHS, MANIFEST
from common.errors import DatasetError, SpecError
from common.job_spec import JobSpec
from lambda_functions.known_names import known_names

MOST_OBJECTS = 10_000
FOLDER_FORMAT = 1
"""Counts up when graph folders of older versions can no longer be read."""


@dataclass(frozen=True)
class JobDataset:
    path: str
    """As the spec says: a bundled name or s3://..."""
    graph: str
    """Prefix in our bucket where its graph folder is, or will be; empty if the data needs none."""


def find_dataset(spec: JobSpec, bucket: str, others: tuple[str, ...]) -> JobDataset:
    """Raises SpecError if it is no place for data, DatasetError if nothing is there or it may not be read."""
    path = spec.dataset.path
    if not path.startswith("s3://"):
        if path not in known_names("bundled"):
            raise SpecError(
                f"dataset.path = {path}",
                why=f"in the cloud a dataset is s3://... or bundled: {', '.join(known_names('bundled'))}",
                fix=f"upload it and say s3://{bucket}/{DATASETS}...",
            )
        return JobDataset(path, "")
    source, _, prefix = path.removeprefix("s3://").partition("/")
    if source != bucket and source not in others:
        raise SpecError(
            f"dataset.path = {path}: this deployment does not allow its bucket",
            why=f"datasets come from {', '.join((bucket, *others))}",
            fix=f"copy it to s3://{bucket}/{DATASETS}, or cdk deploy -c dorylus:dataset_buckets={source}",
        )
    if source == bucket and not prefix.startswith((DATASETS, GRAPHS)):
        raise SpecError(
            f"dataset.path = {path}",
            why=f"of this bucket, servers read datasets below {DATASETS} and graph folders below {GRAPHS}",
            fix=f"copy it to s3://{bucket}/{DATASETS}",
        )
    found = list(_objects(source, prefix))
    if not found:
        raise DatasetError(f"nothing is at {path}", why="the bucket has no object under this prefix", fix="upload it")
    if any(key.endswith(f"/{MANIFEST}") for key, _ in found) and prefix.rstrip("/").endswith(".dorylus"):
        return JobDataset(path, "")
    return JobDataset(path, f"{GRAPHS}{_digest(spec, found)}.dorylus/")


def _objects(bucket: str, prefix: str) -> Iterator[tuple[str, str]]:
    """(key, checksum) of what `prefix` names: one object, or all below it as a folder."""
    pages = boto3.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    count = 0
    try:
        for page in pages:
            for entry in page.get("Contents", ()):
                if entry["Key"] != prefix and not entry["Key"].startswith(f"{prefix.rstrip('/')}/"):
                    continue  # another name that begins alike
                count += 1
                if count > MOST_OBJECTS:
                    raise DatasetError(
                        f"s3://{bucket}/{prefix} holds more than {MOST_OBJECTS:,} objects",
                        why="a dataset is looked through before its job starts",
                        fix="name the folder of the dataset itself, or join its files",
                    )
                yield entry["Key"], entry["ETag"]
    except ClientError as error:
        raise DatasetError(
            f"s3://{bucket}/{prefix} cannot be read", why=str(error), fix="check the bucket's name and its policy"
        ) from None


def _digest(spec: JobSpec, objects: list[tuple[str, str]]) -> str:
    model: dict[str, Any] = spec.model.model_dump()  # the number of intervals follows its widths
    parts = [FOLDER_FORMAT, sorted(objects), spec.dataset.model_dump(), spec.cut.model_dump(), model]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:40]
