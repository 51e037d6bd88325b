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
        f"A field takes {'an' if what[0] in 'aio' else 'a'} {what}, and something else stands "
        "there.",
        f"Write {example}.",
    )


_ALL_RULES: Final = (
    Rule(
        "bad_alias",
        "A YAML alias (`*name`) has no anchor (`&name`) before it, or stands inside its own "
        "anchor.",
        "Define the anchor above the alias, or write the value out.",
    ),
    Rule(
        "bad_bloblang",
        "A mapping or an interpolation (`${! … }`) cannot work: a mistake in the syntax, a "
        "function or method that does not exist, or arguments that it does not take.",
        "Correct it at the place that is named; `streamer blobl` tries a mapping out, and "
        "`streamer list bloblang-functions bloblang-methods` lists what there is.",
    ),
    Rule(
        "bad_duration",
        "A field takes a duration, and its text is none.",
        "Write numbers with units: `30s`, `1h30m`, `250ms`, `1d`.",
    ),
    Rule(
        "bad_ignore",
        "A `# streamer:ignore` comment names no code, or one that does not exist.",
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
        "A label has characters that labels do not have.",
        "Write lower case letters, digits, `_` and `-`, beginning with a letter or a digit.",
        chilled=True,
    ),
    Rule(
        "bad_merge",
        "The YAML merge key `<<` has something else than an object, or a list of objects, "
        "behind it.",
        "Let it stand before an alias of an object: `<<: *defaults`.",
    ),
    Rule(
        "bad_set",
        "An expression of `--set` cannot be applied to the config.",
        "Write `--set path=value`, such as `--set pipeline.threads=2`; the path must lead to "
        "objects and existing items of lists (`-` adds one).",
        ignorable=False,
    ),
    Rule(
        "bad_tag",
        "A YAML tag (`!name`) is not supported, or does not fit the value behind it.",
        "Remove the tag.",
    ),
    Rule(
        "bad_template",
        "A template is not as it should be; its mapping fails on the fields that are given; or "
        "it makes something that is not right, which the rest of the finding says.",
        "Correct the template, or the fields that are given to it; `streamer template lint` "
        "runs a template's tests.",
    ),
    Rule(
        "bad_test",
        "The fields of a unit test do not go together.",
        "Do what the finding says; [Testing](testing.md) has the fields of both kinds of test.",
    ),
    Rule(
        "bad_value",
        "A value has the right type but does not fit: it is out of bounds, or does not go with "
        "another field, such as a window's `slide` that is not shorter than its `size`.",
        "Choose a value as the finding says.",
    ),
    Rule(
        "bad_variable",
        "The value of an environment variable cannot be used: it is not UTF-8, it is not the "
        "base64 that `${NAME|base64decode}` asks for, or there is no function of that name. Or a "
        "line of a file that `--env-file` names is no `NAME=value`.",
        "Correct the variable, the function behind `|`, or the line. The value itself is never "
        "shown.",
    ),
    Rule(
        "bad_yaml",
        "The file is not YAML from this place on.",
        "Look at quotes, brackets and the indentation, also in the lines before; YAML is "
        "indented with spaces.",
        ignorable=False,
    ),
    Rule(
        "catch_in_strict",
        "With `error_handling.strict`, a message on which a processor fails skips all that follow, "
        "a `catch` too, which so recovers nothing.",
        "Put the processors that may fail and those that recover into a `try_catch`.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "conflicting_metric",
        "Two `metric` processors have the same name, and another type or other labels. Whoever "
        "reads the metric cannot add it up: it is of the type `untyped` where its types differ.",
        "Give one of them another name, or both the same type and labels.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "deprecated",
        "A field or component is deprecated; it still works. Found with `--deprecated`.",
        "Use what its documentation names instead.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "doubtful_bloblang",
        "A mapping or an interpolation can be read, but a part of it can never work: a variable "
        "that nothing before it sets, a named map that does not exist, or arguments that "
        "`counter` refuses. Messages fail there.",
        "Correct it at the place that is named. In a named map, and in an interpolation, there are "
        "no variables of the mapping around it.",
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
        "Rename one of them; a label stands for one component in the whole config.",
        chilled=True,
    ),
    Rule(
        "duplicate_path",
        "Two components serve the same path on one server, or listen on the same address: only "
        "one of them would answer.",
        "Give one of them another path, or an address of its own.",
    ),
    Rule(
        "empty",
        "The file holds nothing but comments.",
        "Write at least `input: …`, or remove the file.",
        ignorable=False,
    ),
    _make_type_rule("array", "a list: each item on a line of its own, after `- `"),
    _make_type_rule("bool", "`true` or `false`, without quotes"),
    _make_type_rule("float", "a number, without quotes"),
    _make_type_rule("int", "a whole number, without quotes"),
    _make_type_rule("object", "fields below it (`name: value`), or `{}` for none"),
    _make_type_rule("string", "a text; quote one that would be a list or an object"),
    Rule(
        "impure_key",
        "The `key_mapping` of a window reads files, environment variables or the host's name: "
        "the same message may get one key here and another one on another worker or after a "
        "restart, and so come into another window.",
        "Take the key from the message.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "invalid_option",
        "A field takes one of a few words, such as a log level, and another one stands there.",
        "Choose one of those that the finding lists.",
    ),
    Rule(
        "lint_fault",
        "Lint broke down over the file: a fault of the program, not of the config. Other files are "
        "checked all the same.",
        "Report it, with the file and the text of the finding.",
        ignorable=False,
    ),
    Rule(
        "memory_on_cluster",
        "`spark.master` is a cluster, and a cache lives in the memory of one process, or a rate "
        "limit counts on one machine: every worker has a cache of its own, and loses it when it "
        "ends; every machine has a limit of its own.",
        "Use a cache or rate limit that all workers reach over the network, or a local master.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "message_path",
        "A message says where the output `file` writes, and nothing keeps it below a directory: "
        "who can send messages can have any file written that the program may write.",
        "Set `base` to the directory that no path is to leave, or take only what cannot be a path, "
        'such as `${! this.id.hash("sha256").encode("hex") }`.',
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "missing_component",
        "Nothing says which component is meant.",
        "Write its name as a field, such as `stdin: {}`.",
    ),
    Rule(
        "missing_field",
        "A field that has no default is missing.",
        "Add it.",
    ),
    Rule(
        "missing_label",
        "A resource has no label, so that nothing can refer to it; or any component has none, "
        "which is found with `--labels`.",
        "Add `label: name`.",
    ),
    Rule(
        "missing_package",
        "A component, a field or a Bloblang function needs a Python package that is not installed "
        "where this runs; [Install](install.md) has all extras.",
        "Run the command that the finding names: it installs the extra. Where a config is only "
        "checked, and runs elsewhere, lint with `--skip-package-check`.",
    ),
    Rule(
        "missing_resource",
        "A field refers to a resource by a label that no resource of that kind has.",
        "Correct the label, define the resource in its `…_resources` section, or name the file "
        "that does with `-r`.",
    ),
    Rule(
        "missing_variable",
        "An environment variable is not set, and the config has no default for it.",
        "Set it, write `${NAME:default}`, or lint with `--skip-env-var-check`.",
        chilled=True,
    ),
    Rule(
        "no_keyed_state",
        "A function or processor that keeps state by key (`lag`, `accumulate`, `throttle`, …) "
        "stands where messages have no key, or where nothing is kept: it would fail on every "
        "message.",
        "Put it into a mapping of `pipeline.processors`, behind the buffer `keyed_state` or one "
        "with windows; see [State by key](state.md).",
        ignorable=False,
    ),
    Rule(
        "no_order_among_cases",
        "Two cases of a `switch` change rows of one table, such as one that deletes and one that "
        "upserts, and send several batches at once: a delete may overtake the upsert before it, "
        "and the table is wrong.",
        "Set `max_in_flight: 1` in both: then cases keep the order among each other. Or write "
        "both by one `sql_insert` with `upsert_by` and `delete_when`, which is faster. "
        "`keep_order: false` in the `switch` says that the order does not matter.",
        level="warning",
    ),
    Rule(
        "order_of_arrival",
        "`having`, `index(0)`, `index(-1)`, `from(0)` or `from(-1)` looks at one message of a "
        "window by event time, or `slice(0, n)` or `slice(-n)` at some; or a mapping that makes "
        "one message of a window takes a field from the first one (`this.x`) which is not of the "
        "key. A window's messages are in order of arrival unless its buffer says otherwise: the "
        "first is the one that came first, which need not be the earliest.",
        "Write `order: event_time` in the buffer to have messages sorted by their times, or "
        "`order: arrival` if that is what is meant. `json().from_all().min_by(e -> e.ts)` and "
        "`max_by` choose by a time in the message, and fold.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "output_place",
        "An output promises something about messages that come again (`transactional`, "
        "`dedupe_headers`) which it cannot keep where it stands: inside of another output, or "
        "behind processors of one.",
        "Put it where the message says, or leave the promise out.",
    ),
    Rule(
        "rejected_for_ever",
        "Messages are rejected by the config's own words (`reject`, `reject_errored`, a `switch` "
        "with `strict_mode`, `error_handling.strict` where a processor may fail), nothing catches "
        "them, and nobody waits for an answer: each is kept in the checkpoint and sent again for "
        "ever, while all others go on.",
        "Put the output into a `fallback`, and with `error_handling.strict` the processors into a "
        "`try_catch`; or set `auto_replay_nacks: false` in the input to drop what is rejected.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "resource_cycle",
        "A resource uses itself, through others or directly, and could never be built.",
        "Break the circle that the finding shows.",
    ),
    Rule(
        "several_components",
        "One object names two components.",
        "Keep one of them; processors are items of a list, each with a `- ` of its own.",
    ),
    Rule(
        "several_documents",
        "The file holds more than one YAML document.",
        "Move what follows `---` to a file of its own.",
        ignorable=False,
    ),
    Rule(
        "short_retention",
        "A window buffer keeps results (`retention`) for no longer than its windows may be open: "
        "what comes out of them may be gone before anybody can ask for it.",
        "Let `retention` be longer than the window's length and its `allowed_lateness` together.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "should_omit",
        "A field has no meaning here, such as the label of a component that only points to a "
        "resource, or an empty list of processors beside an input or output.",
        "Remove it.",
        chilled=True,
    ),
    Rule(
        "too_deep",
        "The config is nested deeper than anything reasonable.",
        "Look for an alias that repeats itself, or a list that is opened and never closed.",
        ignorable=False,
    ),
    Rule(
        "too_large",
        "The config holds, or its aliases and variables expand to, more than anything reasonable: "
        "values, characters, or characters of mappings.",
        "Split it into several, remove aliases of aliases, read large tables from files.",
        ignorable=False,
    ),
    Rule(
        "too_many",
        "There are more findings than are shown.",
        "Correct those that are shown, and lint again.",
        ignorable=False,
    ),
    Rule(
        "unavailable_component",
        "Benthos or Redpanda Connect has a component of this name, and this program does not "
        "have it yet.",
        "Use one of those that the finding lists; `streamer list` has them all.",
    ),
    Rule(
        "unheard_response",
        "A `sync_response` answers nobody: no input is an `http_server`, or a window holds the "
        "messages for longer than a request waits.",
        "Remove it; or read with `http_server`, without a window buffer.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "unknown_component",
        "There is no component of this name and kind.",
        "Correct the name; `streamer list` has them all.",
    ),
    Rule(
        "unknown_field",
        "A field has a name that means nothing here.",
        "Correct the name, indent the field as it should be, or remove it.",
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
        "A setting in `spark.conf` takes a guarantee away: with `spark.speculation` tasks run "
        "twice at once and send twice; with version 1 of the state store's checkpoint format a "
        "task that was given up can overwrite windows.",
        "Leave the setting out; the program's own is safe.",
        level="warning",
        runs_ignored=True,
    ),
    Rule(
        "unused_ignore",
        "A `# streamer:ignore` comment silences nothing.",
        "Remove it, or put it above the line that it is for.",
        level="warning",
        ignorable=False,
    ),
    Rule(
        "unused_resource",
        "Nothing in the config refers to this resource. A file of nothing but resources is not "
        "looked at.",
        "Remove it, or use it by its label.",
        level="warning",
        runs_ignored=True,
    ),
)

RULES: Final = {rule.code: rule for rule in _ALL_RULES}
"""All rules by code, in the order of the alphabet."""
