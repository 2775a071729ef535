"""DGL: GraphConv, SAGEConv and GATConv on the whole graph, in its own format."""

import dgl
import torch
from dgl.nn import GATConv, GraphConv, SAGEConv
from training import job, run, set_


def graph(of, *, loops):
    indptr, indices = of.with_self_loops() if loops else (of.indptr, of.indices.long())
    none = torch.empty(0, dtype=torch.int64)  # edges keep no numbers of their own, but for attention
    numbers = torch.arange(len(indices)) if of.settings["model"] == "gat" else none
    return dgl.graph(("csc", (indptr, indices, numbers))).int()


def gcn(of, layer):
    weight = of.weight(layer, "weight")
    made = GraphConv(*weight.shape)
    set_(made.weight, weight)
    set_(made.bias, of.weight(layer, "bias"))
    return made


def graphsage(of, layer):
    neighbour = of.weight(layer, "weight_neighbour")
    made = SAGEConv(*neighbour.shape, "mean")
    set_(made.fc_neigh.weight, neighbour.T)
    set_(made.fc_self.weight, of.weight(layer, "weight_self").T)
    set_(made.fc_self.bias, of.weight(layer, "bias"))
    return made


def gat(of, layer):
    weight, source = of.weight(layer, "weight"), of.weight(layer, "attention_source")
    made = GATConv(weight.shape[0], source.shape[1], source.shape[0], attn_drop=of.attention_dropout)
    set_(made.fc.weight, weight.T)
    set_(made.attn_l, source)
    set_(made.attn_r, of.weight(layer, "attention_target"))
    set_(made.bias, of.weight(layer, "bias"))
    return made


def main():
    of = job()
    model = of.settings["model"]
    make = {"gcn": gcn, "graphsage": graphsage, "gat": gat}[model]
    layers = torch.nn.ModuleList(make(of, layer) for layer in range(of.num_layers))
    whole = graph(of, loops=model != "graphsage")
    run(of, layers, lambda layer, rows: layer(whole, rows).flatten(1))


if __name__ == "__main__":
    main()
