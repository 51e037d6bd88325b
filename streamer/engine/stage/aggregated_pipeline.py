"""The processors that the groups of a pre-aggregated window go through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from streamer.bloblang import Mapping
from streamer.components.processors.mapping import MappingProcessor
from streamer.core.component_stats import ComponentStats
from streamer.core.execution import Execution
from streamer.core.json.bulk import parse_batch
from streamer.core.message import Batch, Message
from streamer.engine.stage.result_writer import write_results
from streamer.plan import Plan
from streamer.plan.window_plan import mapping_index
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.processing import Processor, instrument, run, run_each
from streamer.window.aggregate.fire_groups import AggregatedGroup
from streamer.window.aggregate.partial_aggregates import aggregation_for
from streamer.window.fire.group_columns import GroupColumns


class AggregatedPipeline:
    """Processors of pre-aggregated batches: their own mapping, then those that follow."""

    def __init__(self, plan: Plan, processors: Sequence[Processor], ex: Execution) -> None:
        """Take the plan and its processors, built, and the run in which they are counted."""
        place = mapping_index(plan.key)
        # The mapping of an earlier config speaks in the name of what stands there now.
        known = place < len(plan.processors)
        self._origin = ComponentRef(plan.processors[place] if known else plan.output)
        self._tally = ex.stats_of(self._origin.key) if known else ComponentStats()
        self._ex = ex
        self._rest = processors[place + 1 :]
        self._by_text: dict[str, tuple[Mapping, Processor]] = {}

    @property
    def ends_with_mapping(self) -> bool:
        """Whether nothing follows the mapping, so that one message at most comes of a group."""
        return not self._rest and not self._ex.strict

    def run(self, groups: Sequence[AggregatedGroup]) -> list[Batch]:
        """Run groups that were pre-aggregated for one mapping through the processors.

        A window may have very many, of which each makes one message at most: every processor takes
        all of them at once, as far as it can. Nobody can tell but by the order of log lines.
        """
        ex = self._ex
        if ex.strict and any(group[0].error is not None for group in groups):
            # The mapping is given the first message only, and stands for all.
            self._tally.received += sum([group.size - 1 for group in groups])
            processor = self._get_mapping(groups[0].text)[1]
            return list(run([processor, *self._rest], groups, ex))
        messages = [message for message in self.apply_mapping(groups) if message is not None]
        return run_each(self._rest, messages, ex)

    def run_groups_singly(self, groups: Sequence[AggregatedGroup]) -> Iterator[Iterable[Batch]]:
        """Run groups as `run` does, and give for each what has become of it.

        Behind the mapping that is known only of one at a time, which takes longer. The processors
        there run while a group's batches are taken.
        """
        if self._ex.strict:
            yield from (self._run_lazily(group) for group in groups)
            return
        for message in self.apply_mapping(groups):
            yield () if message is None else run(self._rest, [[message]], self._ex)

    def _run_lazily(self, group: AggregatedGroup) -> Iterator[Batch]:
        yield from self.run([group])

    def apply_mapping(self, groups: Sequence[AggregatedGroup]) -> list[Message | None]:
        """Apply a mapping to the groups pre-aggregated for it; None for a deleted message."""
        mapping = self._get_mapping(groups[0].text)[0]
        ex = self._ex
        self._tally.received += sum([group.size for group in groups])
        began = ex.elapsed()
        if mapping.uses.document:
            parse_batch([group[0] for group in groups])
        messages = mapping.apply_firsts(groups, ex, self._origin.fail)
        self._count_made(len(groups), len(messages) - messages.count(None), began)
        return messages

    def write_results(self, groups: GroupColumns) -> list[bytes] | None:
        """Return what messages `apply_mapping` would make of groups, as JSON, and count them.

        Returns:
            None where it is to be called instead.
        """
        ex = self._ex
        began = ex.elapsed()
        written = None if ex.sampler is not None else write_results(groups)
        if written is not None:
            self._tally.received += sum(groups.sizes)
            self._count_made(len(groups), len(written), began)
        return written

    def _count_made(self, groups: int, messages: int, began: int) -> None:
        """Count groups that the mapping was applied to, and the messages that it made of them."""
        tally = self._tally
        tally.add_latency(self._ex.elapsed() - began, groups)
        tally.batches_received += groups
        tally.sent += messages
        tally.batches_sent += messages

    def processors_for(self, text: str) -> list[Processor]:
        """Return the processors of groups pre-aggregated for a mapping, the mapping first."""
        return [self._get_mapping(text)[1], *self._rest]

    def count_group(self, group: AggregatedGroup) -> None:
        """Count a group that goes through `processors`: there it is one message, and was more."""
        self._tally.received += group.size - 1

    def _get_mapping(self, text: str) -> tuple[Mapping, Processor]:
        entry = self._by_text.get(text)
        if entry is None:
            mapping = aggregation_for(text).mapping
            alone = instrument(MappingProcessor(mapping, self._origin), self._origin)
            entry = self._by_text[text] = (mapping, alone)
        return entry
