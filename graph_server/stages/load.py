"""At load: features, labels and masks come from the graph folder's files, and what is hoisted runs once."""

from common.passes import train
from common.saga.gathers import WeightedSum
from common.saga.tasks import TRUTH
from graph_server.graph.factors import factors
from graph_server.stages.gather import gather_rows
from graph_server.stages.held import Held


def load_constants(held: Held) -> None:
    """Fill features, labels and masks from the graph folder, run what is hoisted, free what is not read again."""
    store, partition, truth = held.store, held.partition, TRUTH[held.programs.model.task]
    for interval in partition.own:
        rows = partition.rows[interval]
        if store.has_constant("hidden0"):
            store.constant("hidden0")[rows] = partition.features(interval)
        labels = partition.labels(interval)
        store.constant(truth)[rows] = labels if labels.ndim == 2 else labels[:, None]
        store.constant("masks")[rows, 0] = partition.masks(interval)
    if store.has_constant("source0"):
        _load_sources(held)
    for step in held.programs.train.once:
        gather_rows(held, train(1), step, (0, held.partition.num_own))
    if held.programs.train.once and store.has_constant("source0"):
        store.free_constant("source0")


def _load_sources(held: Held) -> None:
    """The table of layer 0 when it gathers the features themselves: ghosts come with the partition, too."""
    partition, table, gather = held.partition, held.store.constant("source0"), held.programs.model.layers[0].gather
    own = partition.num_own
    for interval in partition.own:
        table[partition.rows[interval]] = partition.features(interval)
    table[own:] = partition.ghost_features()
    if isinstance(gather, WeightedSum):
        table[:own] *= held.factors[0].pre
        added = ~partition.ghost_has_self_loop & gather.self_loops
        table[own:] *= factors(gather, partition.ghost_in_degree, added, held.store.dtype).pre
