"""GCN: h' = act(sum over u of (d_u d_v)^-1/2 h_u · W + b), missing self loops added.

Source: Kipf & Welling 2017 (arXiv:1609.02907), eq. 2; their input dropout falls on the gathered features here.
"""

from common.saga.gathers import WeightedSum
from common.saga.layer import Layer, Model, ModelOptions, dropout, hidden_ending
from common.saga.tensor_functions import Bias, Linear

DEFAULTS: dict[str, object] = {"model.hidden_size": 16}


def build(options: ModelOptions) -> Model:
    return Model("gcn", options.num_features, tuple(_layer(options, n) for n in range(options.num_layers)))


def _layer(options: ModelOptions, n: int) -> Layer:
    input_dropout = dropout(options.dropout, 0) if n == 0 else ()
    return Layer(
        gather=WeightedSum("sym", self_loops=True),
        update=(*input_dropout, Linear(options.out_width(n)), Bias(), *hidden_ending(options, n)),
    )
