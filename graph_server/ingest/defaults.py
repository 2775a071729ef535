"""Settings known to work on citation graphs with bag-of-words features, by model.

Source: Kipf & Welling 2017 (arXiv:1609.02907), section 5.2; Velickovic et al. 2018 (arXiv:1710.10903), section 3.3.
GraphSAGE and GIN have no published setting for these splits; theirs are ours.
"""

from collections.abc import Mapping

from graph_server.ingest.raw_graph import ReaderDefaults

CITATION_GRAPHS: ReaderDefaults = {
    "gcn": {
        "model.hidden_size": 16,
        "model.dropout": 0.5,
        "training.lr": 0.01,
        "training.weight_decay": 5e-4,
        "training.num_epochs": 200,
    },
    "gat": {
        "model.hidden_size": 8,
        "model.num_heads": 8,
        "model.activation": "elu",
        "model.dropout": 0.6,
        "model.attention_dropout": 0.6,
        "training.lr": 0.005,
        "training.weight_decay": 5e-4,
        "training.num_epochs": 300,
    },
    "graphsage": {
        "model.hidden_size": 64,
        "model.dropout": 0.5,
        "training.lr": 0.01,
        "training.weight_decay": 5e-4,
        "training.num_epochs": 200,
    },
    "gin": {
        "model.hidden_size": 64,
        "model.dropout": 0.5,
        "training.lr": 0.01,
        "training.weight_decay": 5e-4,
        "training.num_epochs": 200,
    },
}

BUNDLED: Mapping[str, ReaderDefaults] = {
    "cora": {**CITATION_GRAPHS, "gcn": {**CITATION_GRAPHS["gcn"], "training.lr": 0.02, "training.num_epochs": 100}},
}
"""Of the bundled graphs: the GCN for a first look, half the epochs at twice the rate; their accuracy is the same."""
