"""Words that are not keys: aliases that are accepted, and words of other tools that get an answer.

Only the aliases are accepted: under the group where the right key lives, reported once, echoed under the right name.
"""

from collections.abc import Mapping
from types import MappingProxyType

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "training.epochs": "training.num_epochs",
        "training.learning_rate": "training.lr",
        "training.wd_l2norm": "training.weight_decay",
        "model.n_hidden": "model.hidden_size",
        "model.hidden_channels": "model.hidden_size",
        "model.n_layers": "model.num_layers",
        "model.heads": "model.num_heads",
    }
)

OTHER_TOOLS: Mapping[str, str] = MappingProxyType(
    {
        "n_epochs": "training.num_epochs",
        "max_epoch": "training.num_epochs",
        "base_lr": "training.lr",
        "l2": "training.weight_decay",
        "random_seed": "training.seed",
        "fix_seed": "training.seed",
        "optim": "training.optimizer",
        "eval_every": "training.eval_frequency",
        "eval_period": "training.eval_frequency",
        "epochs_per_eval": "training.eval_frequency",
        "eval_metric": "training.metric",
        "patience": "training.early_stop_rounds",
        "early_stop_patience": "training.early_stop_rounds",
        "early_stop": "training.use_early_stop",
        "staleness_bound": "training.staleness",
        "imbalance_class_weights": "training.class_weights",
        "num_hidden": "model.hidden_size",
        "dim_inner": "model.hidden_size",
        "hidden_dim": "model.hidden_size",
        "layers_mp": "model.num_layers",
        "att_heads": "model.num_heads",
        "n_heads": "model.num_heads",
        "encoder": "model.name",
        "model_encoder_type": "model.name",
        "layer_type": "model.name",
        "arch": "model.name",
        "num_parts": "cut.num_intervals",
        "num_partitions": "cut.num_intervals",
        "part_method": "cut.method",
        "partition_method": "cut.method",
        "num_servers": "cluster.num_graph_servers",
        "num_trainers": "cluster.num_graph_servers",
        "num_param_servers": "cluster.num_parameter_servers",
        "num_lambdas": "backend.max_lambdas",
        "runtime_memory": "backend.memory_mb",
        "max_run": "budget.max_runtime_seconds",
        "save_model_path": "output.path",
        "out_dir": "output.path",
        "ckpt_period": "output.save_model_frequency",
    }
)

_WHOLE_GRAPH = "every epoch reads the whole graph: no neighbours are sampled and there are no minibatches"
_NO_CLIPPING = "gradient clipping is not offered: it needs the norm over all shards of all parameters in every step"
_NO_INDUCTIVE = "inductive training is not in this version: every epoch sees all vertices and edges, labelled or not"
_NO_BATCH_NORM = "batch norm is not offered: it needs the statistics of every vertex at once, in every layer"

NOT_OFFERED: Mapping[str, str] = MappingProxyType(
    {
        "inductive": _NO_INDUCTIVE,
        "is_inductive": _NO_INDUCTIVE,
        "max_grad_norm": _NO_CLIPPING,
        "grad_clip": _NO_CLIPPING,
        "clip_grad_norm": _NO_CLIPPING,
        "norm": _NO_BATCH_NORM,
        "batch_norm": _NO_BATCH_NORM,
        "fanout": _WHOLE_GRAPH,
        "fan_out": _WHOLE_GRAPH,
        "num_neighbors": _WHOLE_GRAPH,
        "neighbor_sizes": _WHOLE_GRAPH,
        "batch_size": _WHOLE_GRAPH,
        "eval_batch_size": _WHOLE_GRAPH,
    }
)
