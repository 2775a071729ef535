"""A model is declared: layers of up to four parts, in the order a tensor meets them. program.py derives the rest.

h_l --project--> source_l --[edge] gather--> gathered_l --update--> h_{l+1}
"""

from dataclasses import dataclass

from common.saga.gathers import AdditiveScore, Gather
from common.saga.tasks import Task
from common.saga.tensor_functions import Activation, Dropout, Parameter, TensorFunction

Part = tuple[TensorFunction, ...]


@dataclass(frozen=True)
class ModelOptions:
    """What a model file gets to build from; plain data, for it also travels to functions."""

    num_features: int
    num_classes: int
    hidden_sizes: tuple[int, ...]
    num_heads: int = 1
    activation: str = "relu"
    dropout: float = 0.0
    attention_dropout: float = 0.0

    @property
    def num_layers(self) -> int:
        return len(self.hidden_sizes) + 1

    def out_width(self, layer: int) -> int:
        """Per head, where there are heads."""
        return (*self.hidden_sizes, self.num_classes)[layer]

    def is_last(self, layer: int) -> bool:
        return layer == self.num_layers - 1


@dataclass(frozen=True)
class Layer:
    gather: Gather
    update: Part
    reads: tuple[str, ...] = ("gathered",)
    """What the first function of `update` reads: gathered, self (the input row), projected (its own source row)."""
    project: Part = ()
    edge: AdditiveScore | None = None


@dataclass(frozen=True)
class Widths:
    """Of one layer's tensors."""

    hidden: int
    source: int
    gathered: int
    out: int


@dataclass(frozen=True)
class Model:
    name: str
    num_features: int
    layers: tuple[Layer, ...]
    task: Task = "multi_class"
    rounds_rows: bool = False
    """Rows that a WeightedSum reads are published as bfloat16."""

    def widths(self) -> tuple[Widths, ...]:
        all_widths, hidden = [], self.num_features
        for layer in self.layers:
            source = part_width(layer.project, hidden)
            gathered = layer.gather.gathered_width(source)
            named = {"gathered": gathered, "self": hidden, "projected": source}
            out = part_width(layer.update, *(named[name] for name in layer.reads))
            all_widths.append(Widths(hidden, source, gathered, out))
            hidden = out
        return tuple(all_widths)

    def part(self, layer: int, part: str) -> Part:
        return self.layers[layer].project if part == "project" else self.layers[layer].update

    def reads(self, layer: int, part: str) -> tuple[str, ...]:
        return ("self",) if part == "project" else self.layers[layer].reads

    def part_parameters(self, layer: int, part: str) -> tuple[Parameter, ...]:
        """By full name, `layer0.weight`: what is stored, sent and saved."""
        widths = self.widths()[layer]
        named = {"gathered": widths.gathered, "self": widths.hidden, "projected": widths.source}
        inputs, found = tuple(named[name] for name in self.reads(layer, part)), []
        for function in self.part(layer, part):
            for p in function.parameters(*inputs):
                found.append(Parameter(full_name(layer, p.name), p.shape, p.init, p.fan))
            inputs = (function.width(*inputs),)
        return tuple(found)

    def parameters(self) -> tuple[Parameter, ...]:
        parts = [(layer, part) for layer in range(len(self.layers)) for part in ("project", "update")]
        return tuple(p for layer, part in parts for p in self.part_parameters(layer, part))


def full_name(layer: int, name: str) -> str:
    return f"layer{layer}.{name}"


def part_width(part: Part, *widths: int) -> int:
    for function in part:
        widths = (function.width(*widths),)
    return widths[0]


def hidden_ending(options: ModelOptions, layer: int) -> Part:
    """How a hidden layer's update ends: activation, then the next layer's input dropout. The last layer: nothing."""
    if options.is_last(layer):
        return ()
    activation: Part = (Activation(options.activation),)  # type: ignore[arg-type]  # the job spec allows these words only
    return activation + dropout(options.dropout, layer + 1)


def dropout(rate: float, layer: int) -> Part:
    return (Dropout(rate, layer),) if rate else ()
