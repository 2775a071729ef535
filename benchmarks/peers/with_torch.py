"""Plain torch: sparse CSR matrices and two hand-written products; no library for graphs. GCN and GraphSAGE."""

import torch
from training import job, run, set_


class Product(torch.autograd.Function):
    """matrix · rows; the gradient is that of the transposed matrix."""

    @staticmethod
    def forward(context, rows, matrix, transposed):
        context.transposed = transposed
        return matrix @ rows

    @staticmethod
    def backward(context, grad):
        return context.transposed @ grad.contiguous(), None, None


def matrices(of):
    """(A, A transposed): the pattern is symmetric, so both have the same."""
    is_gcn = of.settings["model"] == "gcn"
    indptr, indices = of.with_self_loops() if is_gcn else (of.indptr, of.indices.long())
    degrees = indptr.diff()
    size = (of.num_vertices, of.num_vertices)

    def matrix(values):
        return torch.sparse_csr_tensor(indptr, indices, values, size, check_invariants=False)

    if is_gcn:
        factors = degrees.float().rsqrt()
        normalised = matrix(torch.repeat_interleave(factors, degrees) * factors[indices])
        return normalised, normalised
    factors = 1 / degrees.clamp(min=1).float()
    return matrix(torch.repeat_interleave(factors, degrees)), matrix(factors[indices])


class Layer(torch.nn.Module):
    """rows · W where that is narrower, then the sum over neighbours, and the vertex's own row if it has a matrix."""

    def __init__(self, weight, own, bias):
        super().__init__()
        self.weight, self.bias = (torch.nn.Parameter(torch.empty_like(values)) for values in (weight, bias))
        self.own = None if own is None else torch.nn.Parameter(own.clone())
        set_(self.weight, weight)
        set_(self.bias, bias)

    def forward(self, rows, both):
        if self.weight.shape[1] < self.weight.shape[0]:
            summed = Product.apply(rows @ self.weight, *both)
        else:
            summed = Product.apply(rows, *both) @ self.weight
        return summed + self.bias if self.own is None else summed + rows @ self.own + self.bias


def main():
    of = job()
    is_gcn = of.settings["model"] == "gcn"
    names = ("weight", None) if is_gcn else ("weight_neighbour", "weight_self")

    def make(layer):
        weight, own = (None if name is None else of.weight(layer, name) for name in names)
        return Layer(weight, own, of.weight(layer, "bias"))

    layers = torch.nn.ModuleList(make(layer) for layer in range(of.num_layers))
    both = matrices(of)
    run(of, layers, lambda layer, rows: layer(rows, both))


if __name__ == "__main__":
    main()
