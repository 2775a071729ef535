"""Which vertices train, choose and judge: checks of the user's masks, and a seeded split where there are none.

The split is drawn from Philox's raw stream, whose bits NumPy guarantees: the same seed gives the same split for ever.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.raw_graph import MASK_NAMES, Array, damaged, first_few

TRAIN, VALID, TEST = 1, 2, 4
BITS = dict(zip(MASK_NAMES, (TRAIN, VALID, TEST), strict=True))


def as_mask(values: Array, num_nodes: int, split_index: int, where: str) -> Array:
    """bool [N] out of bool or 0/1 numbers, [N], [N, 1] or [N, S]; `split_index` picks one of S columns."""
    if values.ndim == 2 and values.shape[0] == num_nodes:
        if not 0 <= split_index < values.shape[1]:
            raise DatasetError(
                what=f"split_index = {split_index}, but {where} holds {values.shape[1]} splits",
                why="each column is one split",
                fix=f"choose dataset.split_index between 0 and {values.shape[1] - 1}",
            )
        values = values[:, split_index]
    if values.shape != (num_nodes,) or values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise damaged(where, f"shape {values.shape}, dtype {values.dtype}; needed: {num_nodes} values, each 0 or 1")
    return values.astype(bool)


def listed_masks(lists: Mapping[str, Array], num_nodes: int, where: object) -> dict[str, Array]:
    """bool [N] each, out of lists of row numbers; a name that is absent gives an empty mask."""
    masks = {name: np.zeros(num_nodes, dtype=bool) for name in MASK_NAMES}
    for name, rows in lists.items():
        outside = (rows < 0) | (rows >= num_nodes)
        if outside.any():
            raise DatasetError(
                what=f"{where}: {name} lists {int(outside.sum())} rows that do not exist: {first_few(rows[outside])}",
                why=f"the {num_nodes} vertices are 0 .. {num_nodes - 1}",
                fix="correct the list",
            )
        masks[name][rows] = True
    return masks


def draw_split(labels: Array, fractions: Mapping[str, float], seed: int) -> dict[str, Array]:
    """A stratified split of the labelled vertices: each class is cut by the same fractions.

    labels     int64 [N], -1 = unlabelled: in no mask
    fractions  of train, valid, test; a sum below 1 leaves vertices unused

    Every class with a vertex has one in train, however small it is.
    """
    priority = _priorities(len(labels), seed)
    order = np.lexsort((priority, labels))
    order = order[labels[order] >= 0]
    masks = {name: np.zeros(len(labels), dtype=bool) for name in MASK_NAMES}
    for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        shares = np.cumsum([fractions[name] for name in MASK_NAMES]) * len(rows)
        ends = np.floor(shares + 0.5).astype(int)
        ends = np.maximum(ends, min(1, len(rows)))
        for name, start, end in zip(MASK_NAMES, (0, *ends[:-1]), ends, strict=True):
            masks[name][rows[start:end]] = True
    return masks


def draw_public_style_split(
    labels: Array, seed: int, *, train_per_class: int, num_valid: int, num_test: int
) -> dict[str, Array]:
    """The usual split of citation graphs: so many per class, then so many of all the rest (Yang et al. 2016)."""
    priority = _priorities(len(labels), seed)
    order = np.argsort(priority, kind="stable")
    order = order[labels[order] >= 0]
    per_class = [order[labels[order] == label][:train_per_class] for label in np.unique(labels[order])]
    train = np.isin(np.arange(len(labels)), np.concatenate(per_class))
    rest = order[~train[order]]
    valid, test = (np.zeros(len(labels), dtype=bool) for _ in range(2))
    valid[rest[:num_valid]] = True
    test[rest[num_valid : num_valid + num_test]] = True
    return {"train": train, "valid": valid, "test": test}


def _priorities(count: int, seed: int) -> Array:
    return np.asarray(np.random.Philox(seed).random_raw(count), dtype=np.uint64)


def check_masks(masks: Mapping[str, Array], labels: Array, node_ids: Array) -> tuple[Array, list[str]]:
    """uint8 [N] of the bits TRAIN, VALID, TEST, and warnings.

    Raises DatasetError when masks overlap, train is empty, or a train vertex has no label. Vertices in no mask are
    fine. A valid or test vertex without a label cannot be judged: it leaves its mask, and the count is a warning.
    """
    for error in mask_errors(masks, labels, node_ids):
        raise error
    unlabelled = labels < 0
    bits = np.zeros(len(labels), dtype=np.uint8)
    warnings = []
    for name in MASK_NAMES:
        judged = masks[name] & ~unlabelled
        bits[judged] |= BITS[name]
        if left := int(masks[name].sum() - judged.sum()):
            warnings.append(f"{left} {name} vertices have no label: they are left out of the {name} metric")
    return bits, warnings + _absent_classes(masks["train"], labels)


def mask_errors(masks: Mapping[str, Array], labels: Array, node_ids: Array) -> Iterator[DatasetError]:
    """Everything for which `check_masks` would refuse them."""
    for first, second in (("train", "valid"), ("train", "test"), ("valid", "test")):
        both = masks[first] & masks[second]
        if both.any():
            yield DatasetError(
                what=f"{int(both.sum())} vertices are both {first} and {second}: {first_few(node_ids[both])}",
                why="a vertex that is trained on, or chosen by, cannot judge the result",
                fix="put each vertex into one mask at most",
            )
    if not masks["train"].any():
        yield DatasetError(
            what=f"no vertex of {len(labels)} is in the train mask",
            why="without train vertices there is no loss",
            fix="mark some labelled vertices as train, or remove the masks and set dataset.split",
        )
    blind = masks["train"] & (labels < 0)
    if blind.any():
        yield DatasetError(
            what=f"{int(blind.sum())} train vertices have no label: {first_few(node_ids[blind])}",
            why="the loss of a train vertex compares its prediction with its label",
            fix="take them out of the train mask, or label them",
        )


def _absent_classes(train: Array, labels: Array) -> list[str]:
    absent = np.setdiff1d(labels[labels >= 0], labels[train])
    return [f"classes {first_few(absent)} have no train vertex: the model cannot learn them"] if len(absent) else []
