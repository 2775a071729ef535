"""What a step costs, by declared widths: bytes of rows, weights and gradients, flops per vertex and per edge."""

from dataclasses import dataclass
from typing import Literal

from common.saga.compute import is_worth_keeping, step_gradients, step_parameters
from common.saga.gathers import AttentionSum, WeightedSum
from common.saga.layer import Model
from common.saga.program import (
    Kind,
    Programs,
    Stage,
    StageProgram,
    Step,
    output_gradients,
    part_reads,
    part_writes,
    row_gradients,
)
from common.saga.tensor_functions import DropInputs, Dropout

FLOAT_BYTES, ROUNDED_BYTES = 4, 2
CACHE_LINE, MOST_PADDING = 64, 1.25
"""Rows of tables begin at cache lines where that makes them at most so many times as long: a row read alone then lies
in as few lines as it can."""
TABLES = ("source", "backward")
"""How the names of tables begin: own rows and ghosts, that Gathers and ∇Gathers read."""
Group = Literal["train", "evaluate", "constant"]
"""Which of the tensors of one name is meant; predict passes have those of `evaluate`."""
LOSS_VALUES, MASK_BYTES = 4, 2
"""Of the loss: as many values for each logit. Of dropout: the random byte of a value, and what follows from it."""
CONSTANT_BYTES = {"labels": 8, "masks": 1}
"""Bytes of one vertex's entry of the tensors that are not float32 rows."""


def tensor_width(model: Model, name: str) -> int:
    """Values per row of a tensor in the store."""
    stem, digits = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    if name in ("logits", "grad_logits", "targets"):
        return model.widths()[-1].out
    if name in CONSTANT_BYTES:
        return 1
    layer = model.layers[int(digits)] if int(digits) < len(model.layers) else None
    if layer is None:
        return model.widths()[-1].out
    widths = model.widths()[int(digits)]
    match stem:
        case "hidden" | "grad_self" | "grad_input":
            return widths.hidden
        case "projected" | "grad_source" | "grad_projected":
            return widths.source
        case "gathered" | "grad_gathered":
            return widths.gathered
        case "saved":
            return layer.gather.saved_width(widths.source)
        case "source" | "backward":
            return layer.gather.sent_width(widths.source, backward=stem == "backward")
    raise ValueError(f"no tensor of the programs is called {name!r}")


def is_rounded(model: Model, name: str) -> bool:
    """Whether a tensor's rows are bfloat16: those that a WeightedSum reads, but never features themselves."""
    stem, digits = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    if not model.rounds_rows or stem not in TABLES:
        return False
    layer = model.layers[int(digits)]
    is_published = stem == "backward" or int(digits) > 0 or bool(layer.project)
    return is_published and isinstance(layer.gather, WeightedSum)


def row_bytes(model: Model, name: str) -> int:
    number = ROUNDED_BYTES if is_rounded(model, name) else FLOAT_BYTES
    return CONSTANT_BYTES.get(name, number * tensor_width(model, name))


def row_stride(name: str, num_bytes: int) -> int:
    """From the beginning of one row of a stored tensor to that of the next, where a row has so many bytes."""
    padded = -(-num_bytes // CACHE_LINE) * CACHE_LINE
    return padded if name.startswith(TABLES) and padded <= MOST_PADDING * num_bytes else num_bytes


def _stored_row_bytes(model: Model, name: str) -> int:
    return row_stride(name, row_bytes(model, name))


def stored_tensors(programs: Programs) -> list[tuple[Group, str]]:
    """What the steps of a graph server read and write: training and evaluation have theirs, constants are shared."""
    found: set[tuple[Group, str]] = set()
    passes: tuple[tuple[Group, StageProgram], ...] = (("train", programs.train), ("evaluate", programs.predict))
    for group, program in passes:
        names = {name for step in (*program.once, *program.steps) for name in (*step.reads, *step.writes)}
        found |= {("constant" if name in programs.constants else group, name) for name in names}
    return sorted(found)


def stored_bytes(
    programs: Programs, *, num_own: int, num_ghosts: int = 0, num_backward_ghosts: int = 0, only: Group | None = None
) -> int:
    """Of all these, on a graph server with so many own rows, and ghosts of its Gathers and ∇Gathers."""
    ghosts = {"source": num_ghosts, "backward": num_backward_ghosts}
    return sum(
        (num_own + ghosts.get(name.rstrip("0123456789"), 0)) * _stored_row_bytes(programs.model, name)
        for group, name in stored_tensors(programs)
        if only in (None, group)
    )


def kept_width(model: Model, program: StageProgram) -> int:
    """Values per vertex that whoever computes all tasks of a pass keeps from a step to the one that recomputes it."""
    width = 0
    for step, stage in [(one, each) for one in program.steps for each in one.stages]:
        if stage.kind is Kind.APPLY and not stage.backward:
            inputs = tuple(tensor_width(model, name) for name in part_reads(model, stage.layer, stage.part))
            for function in model.part(stage.layer, stage.part)[:-1]:
                width += function.width(*inputs) if is_worth_keeping(step, function, *inputs) else 0
                inputs = (function.width(*inputs),)
    return width


def once_bytes(programs: Programs, *, num_own: int, num_ghosts: int = 0) -> int:
    """Of these, what only the hoisted steps read: it is freed before training."""
    read_later = {
        name for program in (programs.train, programs.predict) for step in program.steps for name in step.reads
    }
    names = {name for step in programs.train.once for name in step.reads} - read_later
    return sum((num_own + num_ghosts) * _stored_row_bytes(programs.model, name) for name in names)


def task_row_bytes(model: Model, step: Step) -> int:
    """Of one row while its tensor task runs, beside what it reads: outputs of all functions, masks and gradients."""
    stages = sum(_stage_row_bytes(model, step, stage) for stage in (*step.recompute, *step.stages))
    return stages + sum(row_bytes(model, name) for name in step.writes)


def _stage_row_bytes(model: Model, step: Step, stage: Stage) -> int:
    if stage.kind is not Kind.APPLY:
        return LOSS_VALUES * FLOAT_BYTES * model.widths()[-1].out
    inputs = tuple(tensor_width(model, name) for name in part_reads(model, stage.layer, stage.part))
    part, total = model.part(stage.layer, stage.part), 0
    pulled = _wants_row_gradients(model, step, stage) or any(getattr(each, "pulls_rows", False) for each in part)
    widest = sum(inputs) if pulled else 0
    for function in part:
        if isinstance(function, Dropout | DropInputs):
            dropped = FLOAT_BYTES if isinstance(function, DropInputs) else 0
            total += (dropped + MASK_BYTES) * sum(inputs)
        inputs = (function.width(*inputs),)
        total, widest = total + FLOAT_BYTES * inputs[0], max(widest, inputs[0])
    return 2 * FLOAT_BYTES * widest if stage.backward else total


@dataclass(frozen=True)
class StepCost:
    """`..._per_vertex` of an interval's own rows; a ghost is a row sent to one other graph server."""

    bytes_in_per_vertex: int
    bytes_out_per_vertex: int
    bytes_per_ghost: int
    weight_bytes: int
    gradient_bytes: int
    flops_per_vertex: int
    flops_per_edge: int


def step_cost(model: Model, step: Step) -> StepCost:
    task, sent = step.kind is Kind.APPLY, step.writes if step.kind is Kind.SCATTER else ()
    sizes = {p.name: _size(p.shape) * FLOAT_BYTES for p in model.parameters()}
    return StepCost(
        bytes_in_per_vertex=sum(row_bytes(model, n) for n in step.reads) if task else 0,
        bytes_out_per_vertex=sum(row_bytes(model, n) for n in step.writes) if task else 0,
        bytes_per_ghost=sum(row_bytes(model, n) for n in sent),
        weight_bytes=sum(sizes[n] for n in step_parameters(model, step)),
        gradient_bytes=sum(sizes[n] for n in step_gradients(model, step)),
        flops_per_vertex=sum(_part_flops(model, step, s) for s in (*step.recompute, *step.stages)),
        flops_per_edge=_edge_flops(model, step) if step.kind is Kind.GATHER else 0,
    )


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _part_flops(model: Model, step: Step, stage: Stage) -> int:
    """Linear maps: once forward; backward once by weights and, where somebody wants them, once by rows."""
    if stage.kind is not Kind.APPLY:
        return 0
    widths = model.widths()[stage.layer]
    named = {"gathered": widths.gathered, "self": widths.hidden, "projected": widths.source}
    inputs, part = (
        tuple(named[name] for name in model.reads(stage.layer, stage.part)),
        model.part(stage.layer, stage.part),
    )
    each: list[int] = []
    owners: list[int] = []
    for place, function in enumerate(part):
        each.append(function.flops(*inputs))
        owners += [place] if function.parameters(*inputs) else []
        inputs = (function.width(*inputs),)
    if not stage.backward:
        return sum(each if _is_finished(model, step, stage) else each[:-1])
    wanted = _wants_row_gradients(model, step, stage)
    lowest = 0 if wanted or not owners else owners[0]
    by_rows = [wanted or place > lowest or getattr(part[place], "pulls_rows", False) for place in range(len(part))]
    return sum(each[place] * (1 + by_rows[place]) for place in range(lowest, len(part)))


def _is_finished(model: Model, step: Step, stage: Stage) -> bool:
    """Whether anybody reads what a forward part gives; of one that runs again for its tape alone the last function is
    left out (see `compute`)."""
    wrote, others = part_writes(model, stage.layer, stage.part), (*step.recompute, *step.stages)
    read = {name for other in others if other.kind is Kind.APPLY for name in part_reads(model, other.layer, other.part)}
    return wrote in read or wrote in step.writes or (wrote == "logits" and step.has_loss)


def _wants_row_gradients(model: Model, step: Step, stage: Stage) -> bool:
    update = stage.part == "update"
    names = row_gradients(stage.layer, model.layers[stage.layer].reads) if update else (f"grad_input{stage.layer}",)
    pulled = {n for s in step.stages if s.backward for n in output_gradients(model, s.layer, s.part)}
    return any(name in step.writes or name in pulled for name in names)


def _edge_flops(model: Model, step: Step) -> int:
    gather, widths = model.layers[step.layer].gather, model.widths()[step.layer]
    if isinstance(gather, AttentionSum):
        # two weighted sums of the row (the value and its leaky' part), and about 16 for each head's exp
        return 4 * gather.width + 16 * gather.heads
    return widths.source
