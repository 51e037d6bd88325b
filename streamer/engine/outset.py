"""What is looked at when a stream starts: whether its outputs can be written at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from streamer.errors import StreamerError
from streamer.plan import Plan
from streamer.plan.written import all_inside
from streamer.sending.sender import Sender
from streamer.spec import ParsedComponent
from streamer.spec.probe import Preflighting

LogLine = Callable[[str, str, Mapping[str, Any]], None]


def look_at_outputs(
    plan: Plan,
    log: LogLine,
    stream: str,
    connecting: Callable[[ParsedComponent], None] = lambda component: None,
) -> None:
    """Look at the outputs that can say so, wherever they stand; at all of them at once.

    What may pass, such as a broker that is away, is logged: messages will wait for it.

    Args:
        plan: the stream's.
        log: takes level, text and fields.
        stream: names its checkpoint.
        connecting: hears which output is waited for.

    Raises:
        StreamerError: one of them cannot be written, however long it is waited for.
    """
    outputs = list(_preflighting(plan))
    if not outputs:
        return
    # Each waits for somebody else, for seconds where nobody answers.
    with ThreadPoolExecutor(len(outputs)) as pool:
        looks = [(one, pool.submit(output.preflight, stream)) for one, output in outputs]
        for component, look in looks:
            connecting(component)
            wait([look])
    for component, look in looks:
        path = component.path
        try:
            trouble = look.result()
        except StreamerError as error:
            raise StreamerError(f"{path}: {error}") from None
        if trouble:
            log("ERROR", f"Messages will wait: {trouble}", {"path": path})


def _preflighting(plan: Plan) -> Iterator[tuple[ParsedComponent, Preflighting]]:
    for component in all_inside(plan.outputs, plan.resources):
        if component.name == "dynamic":
            continue
        built = plan.context().build(component)
        output = built.output if isinstance(built, Sender) else built
        if isinstance(output, Preflighting):
            yield component, output
