"""The samples of all inputs of a stream, from files or from the inputs themselves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.engine.offline.sample_input import read_file_sample, read_input_sample
from streamer.plan import Plan
from streamer.plan.canary import CALLING_PROCESSORS
from streamer.plan.component_lookup import leaf_inputs
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.spec.children import walk_components
from streamer.tools.cost.measure import SampledInput


def read_samples(plan: Plan, files: Sequence[str], limit: int) -> list[SampledInput]:
    """Return the first messages of each input of a plan.

    Args:
        plan: the stream's plan.
        files: files in the place of inputs: one path, or for several inputs `LABEL=PATH` of some.
        limit: how many messages there are at most, of all inputs together.

    Raises:
        StreamerError: a sample cannot be read, or has no message; a label is not that of an input;
            a processor may change something outside, and it would run for the sample.
    """
    _check_calls(plan)
    inputs = [*leaf_inputs(plan.input, plan.resources)]
    paths = _match_files(inputs, files)
    each = max(limit // len(inputs), 1)
    samples = []
    for component in inputs:
        path = paths.get(component.label)
        if path is not None:
            batches = read_file_sample(path, each)
        else:
            one = replace(plan, input=component)
            batches = read_input_sample(one, each, Execution(time.time_ns))
        samples.append(SampledInput(component, batches))
    if not any(one.count for one in samples):
        raise StreamerError("--cost: the sample has no messages; expected one a line")
    return samples


def _check_calls(plan: Plan) -> None:
    roots = [plan.input, *plan.all_processors]
    calling = [one for one in walk_components(roots) if one.name in CALLING_PROCESSORS]
    names = ", ".join(f"{one.path} {one.name}" for one in calling if one.kind == Kind.PROCESSOR)
    if names:
        raise StreamerError(
            f"--cost runs the processors for the sample, and some may change something outside: "
            f"{names}; replace them in a copy of the config, for example by sleep"
        )


def _match_files(inputs: Sequence[ParsedComponent], files: Sequence[str]) -> dict[str, str]:
    if len(inputs) == 1 and len(files) == 1:
        return {inputs[0].label: files[0]}
    labels = [one.label for one in inputs]
    paths = {}
    for text in files:
        label, separator, path = text.partition("=")
        if not separator or label not in labels:
            known = ", ".join(one for one in labels if one) or "none: give each input a label"
            raise StreamerError(
                f"--input {text}: expected LABEL=FILE with the label of one of the "
                f"{len(inputs)} inputs ({known})"
            )
        paths[label] = path
    return paths
