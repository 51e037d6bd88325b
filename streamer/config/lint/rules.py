"""The rules of lint: every code that a finding may have, what it means and what to do about it.

In one file because they are one table; `streamer.config.rules_page` makes documentation of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Level = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        code: its stable name, which findings carry and `# streamer:ignore` takes.
        meaning: what a finding of this code says, in a sentence or two.
        remedy: what to do about it.
        level: `error` when a config with it does not run, `warning` when it does.
        ignorable: whether a comment can silence it.
        runs_ignored: whether a config runs when a comment silences it; else only lint is silent.
        chilled: whether a config with it runs with `--chilled`, though no comment lets it.
    """

    code: str
    meaning: str
    remedy: str
    level: Level = "error"
    ignorable: bool = True
    runs_ignored: bool = False
    chilled: bool = False

    @property
    def runs_chilled(self) -> bool:
        """Whether a config with it runs with `--chilled`."""
        return self.runs_ignored or self.chilled


def _make_type_rule(what: str, example: str) -> Rule:
    return Rule(
        f"expected_{what}",
        f"The value of a field must be {'an' if what[0] in 'aio' else 'a'} {what}, but is not.",
        f"Write {example}.",
    )


_ALL_RULES: Final = (
    Rule(
        "bad_alias",
        "A YAML alias (`*name`) has no anchor (`&name`) before it, or is inside its own anchor.",
        "Define the anchor above the alias, or write the value out.",
    ),
    Rule(
        "bad_bloblang",
        "A mapping or an interpolation (`${! … }`) has a syntax error, an unknown function or "
        "method, or wrong arguments.",
        "Correct the marked place. `streamer blobl` runs a mapping, and `streamer list "
        "bloblang-functions bloblang-methods` lists all functions and methods.",
    ),
    Rule(
        "bad_duration",
        "The value of a duration field is not a duration.",
        "Write numbers with units: `30s`, `1h30m`, `250ms`, `1d`.",
    ),
    Rule(
        "bad_ignore",
        "A `# streamer:ignore` comment names no code, or an unknown one.",
        "Name codes of this page, separated by commas: `# streamer:ignore deprecated, "
        "unused_resource`.",
        level="warning",
        ignorable=False,
    ),
    Rule(
        "bad_key",
        "The name of a field is a list or an object.",
        "Write a plain text before the colon; quote a text that begins with `[`, `{` or `?`.",
    ),
    Rule(
        "bad_label",
        "A label has characters that are not allowed.",
        "Use lower-case letters, digits, `_` and `-`, beginning with a letter or a digit.",
        chilled=True,
    ),
    Rule(
        "bad_merge",
        "The value of the YAML merge key `<<` is neither an object nor a list of objects.",
        "Write an alias of an object after it: `<<: *defaults`.",
    ),
    Rule(
        "bad_python",
        "Code in Python has a syntax error, or the function that is named is not in it, or takes "
        "something else.",
        "Correct the marked place. See [Python in a pipeline](python.md).",
    ),
    Rule(
        "bad_set",
        "An expression of `--set` cannot be applied to the config.",
        "Write `--set path=value`, such as `--set pipeline.threads=2`. The path must consist of "
        "objects and existing items of lists; `-` adds an item.",
        ignorable=False,
    ),
    Rule(
        "bad_tag",
        "A YAML tag (`!name`) is not supported, or does not fit its value.",
        "Remove the tag.",
    ),
    Rule(
        "bad_template",
        "A template has an error, its mapping fails on the given fields, or its output is "
        "wrong. The rest of the finding has the reason.",
        "Correct the template or its fields. `streamer template lint` runs a template's tests.",
    ),
    Rule(
        "bad_test",
        "The fields of a unit test do not fit together.",
        "Follow the finding. [Unit tests](testing.md) lists the fields of both kinds of test.",
    ),
    Rule(
        "bad_value",
        "A value has the right type but is out of bounds, or does not fit another field. For "
        "example, a window's `slide` must be shorter than its `size`.",
        "Choose a value within the bounds of the finding.",
    ),
    Rule(
        "bad_variable",
        "The value of an environment variable is not UTF-8, or not the base64 that "
        "`${NAME|base64decode}` needs, or the function after `|` is unknown. Or a line of an "
        "`--env-file` is not `NAME=value`.",
        "Correct the variable, the function after `|`, or the line. The value itself is never "
        "shown.",
    ),
    Rule(
        "bad_yaml",
        "The file is not valid YAML from this place on.",
        "Check quotes, brackets and the indentation, also in the lines before. YAML is indented "
        "with spaces.",
        ignorable=False,
    ),
    Rule(
        "catch_in_strict",
        "With `error_handling.strict`, a failed message skips all following processors. A "
        "`catch` is among them and recovers nothing.",
        "Put the processors that may fail, and those that recover, into a `try_catch`.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "conflicting_metric",
        "Two `metric` processors have the same name but different types or labels. Their values "
        "cannot be added; the metric has the type `untyped` if the types differ.",
        "Rename one of them, or give both the same type and labels.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "deprecated",
        "A field or component is deprecated but still works. Found with `--deprecated`.",
        "Use the replacement in its documentation.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "doubtful_bloblang",
        "A part of a mapping or an interpolation always fails: it reads a variable that nothing "
        "sets, applies an unknown named map, or passes wrong arguments to `counter`.",
        "Correct the marked place. Named maps and interpolations cannot read the variables of "
        "the mapping around them.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "duplicate_field",
        "A field is set twice in one object. The first one counts.",
        "Keep one of them.",
        runs_ignored=True,
    ),
    Rule(
        "duplicate_label",
        "Two components have the same label.",
        "Rename one of them; a label must be unique in the whole config.",
        chilled=True,
    ),
    Rule(
        "duplicate_path",
        "Two components serve the same path on one server, or listen on the same address: only "
        "one of them would answer.",
        "Give one of them another path or another address.",
    ),
    Rule(
        "empty",
        "The file has only comments.",
        "Write at least `input: …`, or remove the file.",
        ignorable=False,
    ),
    Rule(
        "endless_wait",
        "Windows whose clock follows each key, partition or input stay open for ever when one of "
        "these falls silent: neither `idle_timeout` nor `source_idle_timeout` ends the wait.",
        "Set `idle_timeout`, or with `clock_scope: partition` or `input` a `source_idle_timeout` "
        "above 0s. `streamer why` shows the sources that hold a running stream back.",
        level="warning",
        runs_ignored=True,
    ),
    _make_type_rule("array", "a list: each item on its own line, after `- `"),
    _make_type_rule("bool", "`true` or `false`, without quotes"),
    _make_type_rule("float", "a number, without quotes"),
    _make_type_rule("int", "a whole number, without quotes"),
    _make_type_rule("object", "fields below it (`name: value`), or `{}` for none"),
    _make_type_rule("string", "a text; quote a text that would be a list or an object"),
    Rule(
        "impure_key",
        "The `key_mapping` of a window reads files, environment variables or the host's name. A "
        "message may get another key on another worker or after a restart, and so be in another "
        "window.",
        "Take the key from the message.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "invalid_option",
        "A field has a fixed list of values, such as a log level, and this value is not in it.",
        "Choose a value from the list in the finding.",
    ),
    Rule(
        "lint_fault",
        "Lint failed on the file because of a fault of the program, not of the config. Other "
        "files are still checked.",
        "Report it, with the file and the text of the finding.",
        ignorable=False,
    ),
    Rule(
        "memory_on_cluster",
        "`spark.master` is a cluster, but a cache is in memory or a rate limit is local. Every "
        "worker then has its own cache and loses it when it ends; every machine has its own "
        "limit.",
        "Use a cache or rate limit on a server that all workers can reach, or a local master.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "message_path",
        "A message determines the path of the output `file`, and no `base` limits it. Senders "
        "of messages can then write any file that the program may write.",
        "Set `base` to a directory that paths must not leave, or use an expression that cannot "
        'be a path, such as `${! this.id.hash("sha256").encode("hex") }`.',
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "missing_component",
        "No component is named.",
        "Write the component's name as a field, such as `stdin: {}`.",
    ),
    Rule(
        "missing_field",
        "A required field is missing.",
        "Add it.",
    ),
    Rule(
        "missing_label",
        "A resource has no label, so nothing can refer to it. With `--labels`, any component "
        "without a label.",
        "Add `label: name`.",
    ),
    Rule(
        "missing_package",
        "A component, a field or a Bloblang function needs a Python package that is not "
        "installed. [Install](install.md) lists all extras.",
        "Run the command in the finding, which installs the extra. For configs that run "
        "elsewhere, lint with `--skip-package-check`.",
    ),
    Rule(
        "missing_resource",
        "No resource of this kind has the label in the field.",
        "Correct the label, define the resource in its `…_resources` section, or pass the file "
        "of the resource with `-r`.",
    ),
    Rule(
        "missing_secret",
        "A secret is not there: the file of `${file:PATH}` is missing or cannot be read, or a "
        "store of `--secrets` that may have the name does not answer.",
        "Create the file, let the program's user read it, or check the store. See "
        "[Secrets](secrets.md).",
        chilled=True,
    ),
    Rule(
        "missing_variable",
        "An environment variable is not set, and the config has no default for it.",
        "Set it, write `${NAME:default}`, or lint with `--skip-env-var-check`.",
        chilled=True,
    ),
    Rule(
        "mixed_groups",
        "An expectation with `history` stands behind `group_by_value` or `group_by`, and does not "
        "name the group. It would compare each group with all others.",
        "Set `history.group` to the value of the group, such as `this.light`. Or move `expect` "
        "before the grouping; see [Expectations](expectations.md).",
        ignorable=False,
    ),
    Rule(
        "no_keyed_state",
        "A function or processor with state by key (`lag`, `accumulate`, `throttle`, …) is in a "
        "place where messages have no key or no state. It would fail on every message.",
        "Move it to a mapping of `pipeline.processors`, behind the buffer `keyed_state` or a "
        "window buffer; see [State by key](state.md).",
        ignorable=False,
    ),
    Rule(
        "no_order_among_cases",
        "Two cases of a `switch` change rows of one table and send several batches at once. A "
        "delete may overtake an earlier upsert, and the table is wrong.",
        "Set `max_in_flight: 1` in both, so that cases keep the order. Or write both with one "
        "`sql_insert` with `upsert_by` and `delete_when`, which is faster. Or set `keep_order: "
        "false` in the `switch` if the order does not matter.",
        level="warning",
    ),
    Rule(
        "no_window",
        "An expectation of the processor `expect` is per window, and there are no windows.",
        "Set `per: batch`, or move it to `pipeline.processors` behind a buffer with windows; see "
        "[Expectations](expectations.md).",
        ignorable=False,
    ),
    Rule(
        "order_of_arrival",
        "A mapping uses single messages of an event-time window, but the buffer sets no `order`. "
        "Such uses are `having`, `index`, `from`, `slice`, and a field such as `this.x` that is "
        "not part of the key. Messages are in arrival order by default: the first one need not be "
        "the earliest.",
        "Set `order: event_time` in the buffer to sort messages by their times, or `order: "
        "arrival` if you want arrival order. `json().from_all().min_by(e -> e.ts)` and `max_by` "
        "select by a time in the message, and can be pre-aggregated.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "output_place",
        "An output has a guarantee about repeated messages (`transactional`, `dedupe_headers`) "
        "that it cannot give inside another output or behind processors of one.",
        "Move it to the place in the finding, or remove the setting.",
    ),
    Rule(
        "readable_secret",
        "Every user of the machine may read a file that `${file:PATH}` names. Files below "
        "`/run/secrets`, where containers have their secrets, are left out.",
        "Change its mode: `chmod o-r PATH`.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "rejected_for_ever",
        "The config rejects messages (`reject`, `reject_errored`, `switch` with `strict_mode`, "
        "`error_handling.strict`), no output catches them, and no sender waits for an answer. "
        "Each one is kept in the checkpoint and sent again for ever, while all others continue.",
        "Put the output into a `fallback`, and with `error_handling.strict` the processors into "
        "a `try_catch`. Or set `auto_replay_nacks: false` in the input to drop rejected "
        "messages.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "resource_cycle",
        "A resource uses itself, directly or through others, and could never be built.",
        "Break the cycle in the finding.",
    ),
    Rule(
        "several_components",
        "One object names two components.",
        "Keep one of them. Processors are items of a list, each with its own `- `.",
    ),
    Rule(
        "several_documents",
        "The file has more than one YAML document.",
        "Move the text after `---` to another file.",
        ignorable=False,
    ),
    Rule(
        "short_retention",
        "`retention` of a window buffer is not longer than its windows may be open. Results may "
        "expire before they can be queried.",
        "Make `retention` longer than the window's length plus its `allowed_lateness`.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "should_omit",
        "A field has no effect here, such as the label of a component that only refers to a "
        "resource, or an empty list of processors beside an input or output.",
        "Remove it.",
        chilled=True,
    ),
    Rule(
        "too_deep",
        "The config is nested too deeply.",
        "Look for an alias that contains itself, or a list that is never closed.",
        ignorable=False,
    ),
    Rule(
        "too_large",
        "The config, with its aliases and variables expanded, is too large: values, characters, "
        "or characters of mappings.",
        "Split it into several configs, remove aliases of aliases, read large tables from files.",
        ignorable=False,
    ),
    Rule(
        "too_many",
        "There are more findings than shown.",
        "Correct the shown ones and lint again.",
        ignorable=False,
    ),
    Rule(
        "unavailable_component",
        "Benthos or Redpanda Connect has a component of this name, but this program does not "
        "have it yet.",
        "Use one of the components in the finding; `streamer list` lists all.",
    ),
    Rule(
        "unheard_response",
        "No request waits for this `sync_response`: no input is an `http_server`, or a window "
        "holds the messages longer than a request waits.",
        "Remove it, or use `http_server` without a window buffer.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "unknown_component",
        "No component of this kind has this name.",
        "Correct the name; `streamer list` lists all components.",
    ),
    Rule(
        "unknown_field",
        "The field is unknown in this place.",
        "Correct the name or the indentation, or remove the field.",
        runs_ignored=True,
    ),
    Rule(
        "unreadable",
        "The file cannot be read: it is missing, too large, or not UTF-8.",
        "Correct the path, or save the file as UTF-8.",
        ignorable=False,
    ),
    Rule(
        "unsafe_spark_setting",
        "A setting in `spark.conf` breaks a guarantee. With `spark.speculation`, tasks run "
        "twice at once and send twice. With version 1 of the state store's checkpoint format, a "
        "task that was replaced can overwrite windows.",
        "Remove the setting; the default is safe.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "unused_ignore",
        "A `# streamer:ignore` comment silences nothing.",
        "Remove it, or move it above its line.",
        level="warning",
        ignorable=False,
    ),
    Rule(
        "unused_resource",
        "Nothing in the config refers to this resource. Files with only resources are not checked.",
        "Remove it, or use it by its label.",
        level="warning",
        runs_ignored=True,
    ),
)

RULES: Final = {rule.code: rule for rule in _ALL_RULES}
"""All rules by code, in the order of the alphabet."""
