"""PyG: GCNConv, SAGEConv and GATConv on the whole graph, its edges in one of three forms.

edge_index  two rows of ends, its default: a message per edge is made and added up
csr         a sparse CSR tensor of torch's
sparse      a SparseTensor of torch-sparse
"""

import torch
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from training import job, run, set_


def adjacency(of):
    if of.form == "edge_index":
        return torch.stack([of.indices.long(), of.targets])
    if of.form == "csr":
        return csr(of)
    from torch_sparse import SparseTensor

    size = (of.num_vertices, of.num_vertices)
    made = SparseTensor(rowptr=of.indptr, col=of.indices.long(), sparse_sizes=size)
    made.fill_cache_()
    return made


def csr(of):
    """GCN's is normalised here, once, as its layers do with the other forms."""
    size = (of.num_vertices, of.num_vertices)
    if of.settings["model"] != "gcn":
        indices = of.indices.long()
        return torch.sparse_csr_tensor(of.indptr, indices, torch.ones(len(indices)), size, check_invariants=False)
    indptr, indices = of.with_self_loops()
    factors = indptr.diff().float().rsqrt()
    values = torch.repeat_interleave(factors, indptr.diff()) * factors[indices]
    return torch.sparse_csr_tensor(indptr, indices, values, size, check_invariants=False)


def gcn(of, layer):
    weight, is_csr = of.weight(layer, "weight"), of.form == "csr"
    made = GCNConv(*weight.shape, cached=not is_csr, normalize=not is_csr)
    set_(made.lin.weight, weight.T)
    set_(made.bias, of.weight(layer, "bias"))
    return made


def graphsage(of, layer):
    neighbour = of.weight(layer, "weight_neighbour")
    made = SAGEConv(*neighbour.shape)
    set_(made.lin_l.weight, neighbour.T)
    set_(made.lin_l.bias, of.weight(layer, "bias"))
    set_(made.lin_r.weight, of.weight(layer, "weight_self").T)
    return made


def gat(of, layer):
    weight, source = of.weight(layer, "weight"), of.weight(layer, "attention_source")
    made = GATConv(weight.shape[0], source.shape[1], source.shape[0], dropout=of.attention_dropout)
    set_(made.lin.weight, weight.T)
    set_(made.att_src, source)
    set_(made.att_dst, of.weight(layer, "attention_target"))
    set_(made.bias, of.weight(layer, "bias"))
    return made


def main():
    of = job()
    make = {"gcn": gcn, "graphsage": graphsage, "gat": gat}[of.settings["model"]]
    layers = torch.nn.ModuleList(make(of, layer) for layer in range(of.num_layers))
    edges = adjacency(of)
    run(of, layers, lambda layer, rows: layer(rows, edges))


if __name__ == "__main__":
    main()
