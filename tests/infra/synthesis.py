"""The stack, synthesised once for all tests: with assets that are made of what is installed, and no network."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from infra.app import build
from infra.assets import ARCHITECTURES, Assets
from infra.bundle import STEP_MODULES, TENSOR_MODULES, TRIGGER_MODULES, copy_boot, copy_closure, write_known_names
from infra.context import Context

OTHER: dict[str, object] = {
    "dorylus:name": "small",
    "dorylus:endpoints": "private",
    "dorylus:zones": "2",
    "dorylus:function_architecture": "x86_64",
    "dorylus:dashboard": "false",
    "dorylus:notify_email": "ada@example.org",
    "dorylus:dataset_buckets": "colleagues, archive",
    "dorylus:log_days": "7",
}
"""What may be chosen, chosen otherwise; names and zones are those of tests/lambda_functions/job_cloud.py's world."""


@dataclass(frozen=True)
class Synthesis:
    template: dict[str, Any]
    folder: Path
    assets: Assets
    name: str

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Logical id -> properties."""
        found = self.template["Resources"].items()
        return {name: one.get("Properties", {}) for name, one in found if one["Type"] == f"AWS::{kind}"}

    def only(self, kind: str) -> dict[str, Any]:
        (one,) = self.of_type(kind).values()
        return one

    def function(self, name: str) -> dict[str, Any]:
        functions = self.of_type("Lambda::Function").values()
        return next(one for one in functions if one["FunctionName"] == f"{self.name}-{name}")

    def statements(self, part: str) -> list[dict[str, Any]]:
        """What the policies say whose logical id begins so; actions and resources as lists."""
        policies = [one for name, one in self.of_type("IAM::Policy").items() if name.startswith(part)]
        assert policies, part
        found = [each for policy in policies for each in policy["PolicyDocument"]["Statement"]]
        return [{**each, "Action": _list(each["Action"]), "Resource": _list(each["Resource"])} for each in found]

    def allows(self, part: str, action: str) -> list[dict[str, Any]]:
        return [one for one in self.statements(part) if action in one["Action"] and one["Effect"] == "Allow"]


def synthesise(folder: Path, values: dict[str, object]) -> Synthesis:
    context = Context.read(values)
    assets = small_assets(folder / "assets")
    app = cdk.App(outdir=str(folder / "out"))
    build(app, assets, context)
    app.synth()
    template = json.loads((folder / "out" / f"{context.name}.template.json").read_text(encoding="utf-8"))
    return Synthesis(template, folder / "out", assets, context.name)


def small_assets(folder: Path) -> Assets:
    """Our own code as it is deployed; dependencies are not in it."""
    tensor, trigger, steps = folder / "tensor", folder / "trigger", folder / "steps"
    copy_closure(TENSOR_MODULES, tensor)
    copy_closure(TRIGGER_MODULES, trigger)
    write_known_names(trigger)
    copy_closure(STEP_MODULES, steps)
    for architecture in ARCHITECTURES:
        copy_boot(folder / architecture)
        (folder / architecture / "architecture").write_text(architecture, encoding="utf-8")
    return Assets(tensor, trigger, steps, {architecture: folder / architecture for architecture in ARCHITECTURES})


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
