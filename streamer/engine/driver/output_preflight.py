"""Checks at the start of a stream: whether its outputs can be written at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait

from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.plan import Plan
from streamer.plan.component_lookup import flatten_outputs
from streamer.sdk.output.sender import Sender
from streamer.sdk.spec import ParsedComponent
from streamer.sdk.spec.checks import SupportsPreflight


def preflight_outputs(
    plan: Plan,
    log: LogLine,
    stream: str,
    on_connect: Callable[[ParsedComponent], None] = lambda component: None,
) -> None:
    """Check all outputs that can be checked, wherever they stand, at once.

    What may pass, such as a broker that is away, is logged: messages will wait for it.

    Args:
        plan: the stream's.
        log: takes level, text and fields.
        stream: names its checkpoint.
        on_connect: called with the output that is waited for.

    Raises:
        StreamerError: one of them cannot be written, however long it is waited for.
    """
    outputs = list(_outputs_with_preflight(plan))
    if not outputs:
        return
    # Each waits for somebody else, for seconds where nobody answers.
    with ThreadPoolExecutor(len(outputs)) as pool:
        futures = [(one, pool.submit(output.preflight, stream)) for one, output in outputs]
        for component, future in futures:
            on_connect(component)
            wait([future])
    for component, future in futures:
        path = component.path
        try:
            trouble = future.result()
        except StreamerError as error:
            raise StreamerError(f"{path}: {error}") from None
        if trouble:
            log("ERROR", f"Messages will wait: {trouble}", {"path": path})


def _outputs_with_preflight(plan: Plan) -> Iterator[tuple[ParsedComponent, SupportsPreflight]]:
    for component in flatten_outputs(plan.outputs, plan.resources):
        if component.name == "dynamic":
            continue
        built = plan.context().build(component)
        output = built.output if isinstance(built, Sender) else built
        if isinstance(output, SupportsPreflight):
            yield component, output
