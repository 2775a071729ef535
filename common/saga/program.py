"""From a declared model to its stage programs, by seven rules, each a function here.

1 forward   per layer: [project] · Scatter · [edge] · Gather · update; then Loss; the first Scatter falls away when its
            rows came with the partition
2 backward  layers in reverse: ∇update · ∇Scatter · [∇edge] · ∇Gather over the transposed edges · [∇project]
3 prune     stop below the lowest part that has parameters
4 fuse      neighbouring tensor stages touch the same rows: one tensor task
5 tensors   each step lists what it reads and writes; a backward step recomputes the rest from what it reads
6 hoist     a Gather over a constant input runs once
7 commute   a narrowing linear first map of `update` moves in front of Scatter

Rules 6 and 7 decide by declared widths alone and can be switched off, which gives the paper's own program.
Source: Dorylus (OSDI'21), sections 3 and 4.
"""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from common.saga.gathers import WeightedSum
from common.saga.layer import Layer, Model, part_width
from common.saga.tasks import OF_ROWS, TRUTH, Metric, Task


class Kind(enum.Enum):
    GATHER = "Gather"
    APPLY = "ApplyVertex"
    SCATTER = "Scatter"
    EDGE = "ApplyEdge"
    LOSS = "Loss"


@dataclass(frozen=True)
class Stage:
    kind: Kind
    layer: int
    part: str = ""
    """project or update, of an ApplyVertex."""
    backward: bool = False

    def __str__(self) -> str:
        if self.kind is Kind.LOSS:
            return "Loss"
        return f"{'∇' if self.backward else ''}{self.kind.value}{self.layer}"


@dataclass(frozen=True)
class Step:
    """What an interval is moved through: one Gather (with its edge stage), one Scatter, or one tensor task."""

    stages: tuple[Stage, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    recompute: tuple[Stage, ...] = ()
    """Forward stages a backward tensor task runs again (the paper's rematerialisation)."""

    @property
    def kind(self) -> Kind:
        last = self.stages[-1].kind
        return Kind.APPLY if last is Kind.LOSS else last

    @property
    def layer(self) -> int:
        return self.stages[-1].layer

    @property
    def backward(self) -> bool:
        return self.stages[-1].backward

    @property
    def has_loss(self) -> bool:
        return any(stage.kind is Kind.LOSS for stage in self.stages)

    def __str__(self) -> str:
        if self.kind is not Kind.APPLY:
            return " · ".join(map(str, self.stages))
        words: list[str] = []
        for before, stage in zip((None, *self.stages), self.stages, strict=False):
            together = before is not None and before.kind is stage.kind and before.backward == stage.backward
            words.append(str(stage.layer) if together else str(stage))
        return "+".join(words)


@dataclass(frozen=True)
class StageProgram:
    once: tuple[Step, ...]
    """Run at load; their outputs are constants."""
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        once = f"(once: {' · '.join(map(str, self.once))}) " if self.once else ""
        return once + " · ".join(map(str, self.steps))


@dataclass(frozen=True)
class Programs:
    """`model` is the declared one after rule 7: its parts are what the stages run."""

    model: Model
    train: StageProgram
    evaluate: StageProgram
    predict: StageProgram
    """`evaluate` that keeps the logits; the same where the metric ranks them."""
    constants: frozenset[str]


def derive(
    model: Model,
    *,
    hoist: bool = True,
    commute: bool = True,
    task: Task = "multi_class",
    metric: Metric = "accuracy",
    rounds_rows: bool = False,
) -> Programs:
    """A metric of rows wants the logits of every evaluation, not only of the last one."""
    model = replace(model, task=task, rounds_rows=rounds_rows)
    hoisted = {0} if hoist and not model.layers[0].project else set[int]()
    if commute:
        model = commuted(model, hoisted)
    ahead = forward(model)
    once = [s for s in ahead if s.kind in (Kind.GATHER, Kind.EDGE) and s.layer in hoisted]
    ahead = [s for s in ahead if s not in once]
    behind = prune(backward(model), model)
    once_steps = with_tensors(fuse(once), model, wanted=[f"gathered{n}" for n in hoisted])

    def program(stages: Sequence[Stage], wanted: Sequence[str] = ()) -> StageProgram:
        return StageProgram(once_steps, with_tensors(fuse(stages), model, wanted))

    constants = frozenset({"hidden0", TRUTH[task], "masks"} | {name for step in once_steps for name in step.writes})
    if not model.layers[0].project:
        constants |= {"source0"}
    predict = program(ahead, ["logits"])
    return Programs(
        model, program(ahead + behind), predict if metric in OF_ROWS else program(ahead), predict, constants
    )


def forward(model: Model) -> list[Stage]:
    stages: list[Stage] = []
    for n, layer in enumerate(model.layers):
        stages += [Stage(Kind.APPLY, n, "project")] if layer.project else []
        stages += [Stage(Kind.SCATTER, n)] if n or layer.project else []
        stages += [Stage(Kind.EDGE, n)] if layer.edge else []
        stages += [Stage(Kind.GATHER, n), Stage(Kind.APPLY, n, "update")]
    return [*stages, Stage(Kind.LOSS, len(model.layers) - 1)]


def backward(model: Model) -> list[Stage]:
    stages: list[Stage] = []
    for n, layer in reversed(list(enumerate(model.layers))):
        stages += [Stage(Kind.APPLY, n, "update", backward=True), Stage(Kind.SCATTER, n, backward=True)]
        stages += [Stage(Kind.EDGE, n, backward=True)] if layer.edge else []
        stages += [Stage(Kind.GATHER, n, backward=True)]
        stages += [Stage(Kind.APPLY, n, "project", backward=True)] if layer.project else []
    return stages


def prune(stages: Sequence[Stage], model: Model) -> list[Stage]:
    """Everything behind the last ∇ApplyVertex that owns parameters computes what nobody reads."""
    owners = [
        position
        for position, stage in enumerate(stages)
        if stage.kind is Kind.APPLY and model.part_parameters(stage.layer, stage.part)
    ]
    return list(stages[: owners[-1] + 1]) if owners else []


def fuse(stages: Sequence[Stage]) -> list[Step]:
    steps: list[Step] = []
    for stage in stages:
        if steps and _one_step(steps[-1].stages[-1], stage):
            steps[-1] = Step((*steps[-1].stages, stage))
        else:
            steps.append(Step((stage,)))
    return steps


def _one_step(before: Stage, stage: Stage) -> bool:
    tensor = (Kind.APPLY, Kind.LOSS)
    return (before.kind in tensor and stage.kind in tensor) or before.kind is Kind.EDGE


def commuted(model: Model, hoisted: Iterable[int]) -> Model:
    layers = [layer if n in hoisted else _commuted(layer, model, n) for n, layer in enumerate(model.layers)]
    return replace(model, layers=tuple(layers))


def _commuted(layer: Layer, model: Model, n: int) -> Layer:
    first, gathered = layer.update[0], model.widths()[n].gathered
    behind_a_sum = isinstance(layer.gather, WeightedSum) and layer.reads[0] == "gathered" and not layer.project
    narrows = part_width((first,), *_first_inputs(layer, model, n)) < gathered
    if not (behind_a_sum and narrows and hasattr(first, "commuted")):
        return layer
    project, stays, reads = cast(Any, first).commuted()
    return replace(layer, project=(project,), update=(stays, *layer.update[1:]), reads=reads)


def _first_inputs(layer: Layer, model: Model, n: int) -> list[int]:
    widths = model.widths()[n]
    named = {"gathered": widths.gathered, "self": widths.hidden, "projected": widths.source}
    return [named[name] for name in layer.reads]


# ---- rule 5


def source_name(model: Model, n: int) -> str:
    """The rows Scatter n publishes."""
    return f"projected{n}" if model.layers[n].project else f"hidden{n}"


def part_reads(model: Model, n: int, part: str) -> tuple[str, ...]:
    names = {"gathered": f"gathered{n}", "self": f"hidden{n}", "projected": f"projected{n}"}
    return tuple(names[name] for name in model.reads(n, part))


def part_writes(model: Model, n: int, part: str) -> str:
    if part == "project":
        return f"projected{n}"
    return "logits" if n == len(model.layers) - 1 else f"hidden{n + 1}"


def row_gradients(n: int, reads: Sequence[str]) -> tuple[str, ...]:
    """Names of what ∇update n gives for each tensor it read."""
    return tuple(f"grad_{name}{n}" for name in reads)


def output_gradients(model: Model, n: int, part: str) -> tuple[str, ...]:
    """The summands, in order, of the gradient of what a part wrote."""
    if part == "project":
        reads_own = "projected" in model.layers[n].reads
        return (f"grad_source{n}", f"grad_projected{n}") if reads_own else (f"grad_source{n}",)
    if n == len(model.layers) - 1:
        return ("grad_logits",)
    above = model.layers[n + 1]
    first = f"grad_input{n + 1}" if above.project else f"grad_source{n + 1}"
    return (first, f"grad_self{n + 1}") if "self" in above.reads else (first,)


def _stage_reads(stage: Stage, model: Model) -> tuple[str, ...]:
    n, attention = stage.layer, model.layers[stage.layer].edge is not None
    match stage.kind, stage.backward:
        case Kind.LOSS, _:
            return ("logits", TRUTH[model.task], "masks")
        case Kind.APPLY, False:
            return part_reads(model, n, stage.part)
        case Kind.APPLY, True:
            return (*part_reads(model, n, stage.part), *output_gradients(model, n, stage.part))
        case Kind.SCATTER, False:
            return (source_name(model, n),)
        case Kind.SCATTER, True:
            return (f"grad_gathered{n}", *((f"gathered{n}", f"projected{n}", f"saved{n}") if attention else ()))
        case Kind.GATHER, False:
            return (f"source{n}", *((f"projected{n}",) if attention else ()))
        case Kind.GATHER, True:
            return (f"backward{n}", *((f"projected{n}", f"saved{n}") if attention else ()))
    return ()


def _stage_writes(stage: Stage, model: Model) -> tuple[str, ...]:
    n, attention = stage.layer, model.layers[stage.layer].edge is not None
    match stage.kind, stage.backward:
        case Kind.LOSS, _:
            return ("grad_logits",)
        case Kind.APPLY, False:
            return (part_writes(model, n, stage.part),)
        case Kind.APPLY, True:
            return (f"grad_input{n}",) if stage.part == "project" else row_gradients(n, model.layers[n].reads)
        case Kind.SCATTER, False:
            return (f"source{n}",)
        case Kind.SCATTER, True:
            return (f"backward{n}",)
        case Kind.GATHER, False:
            return (f"gathered{n}", *((f"saved{n}",) if attention else ()))
        case Kind.GATHER, True:
            return (f"grad_source{n}",)
    return ()


def with_tensors(steps: Sequence[Step], model: Model, wanted: Iterable[str] = ()) -> tuple[Step, ...]:
    """Each step with what it reads from the tensor store, what another step reads of it, and what it recomputes."""
    steps = [replace(step, recompute=_recompute(step)) for step in steps]
    steps = [replace(step, reads=_reads(step, model)) for step in steps]
    needed = {name for step in steps for name in step.reads} | set(wanted)
    return tuple(replace(step, writes=_writes(step, model, needed)) for step in steps)


def _writes(step: Step, model: Model, needed: set[str]) -> tuple[str, ...]:
    """A tensor task gives only what is read; a graph step fills all of its own."""
    written = [name for stage in step.stages for name in _stage_writes(stage, model)]
    return tuple(name for name in written if name in needed or step.kind is not Kind.APPLY)


def _recompute(step: Step) -> tuple[Stage, ...]:
    """∇project n needs hidden n: where ∇update n-1 stands in the same step, its forward is run again, once for both."""
    ours = [stage for stage in step.stages if stage.kind is Kind.APPLY]
    ahead = {(stage.layer, stage.part) for stage in ours if not stage.backward}
    behind = [stage for stage in ours if stage.backward and (stage.layer, stage.part) not in ahead]
    return tuple(replace(stage, backward=False) for stage in reversed(behind))


def _reads(step: Step, model: Model) -> tuple[str, ...]:
    made, found = set[str](), list[str]()
    for stage in (*step.recompute, *step.stages):
        found += [name for name in _stage_reads(stage, model) if name not in made and name not in found]
        made.update(_stage_writes(stage, model))
    return tuple(found)
