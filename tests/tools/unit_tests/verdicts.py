"""Cases that pass and cases that fail, by what they show; the verdicts are those of Benthos 4.76.

Each is YAML of a case without its name; where it says nothing else, its target is the config's
pipeline, which is empty.
"""

from __future__ import annotations

import json

CONFIG = """\
pipeline:
  processors: []
"""

FILES = {
    "text.txt": "hello\nworld\n",
    "doc.json": '{ "b": [1, 2],\n  "a": "x" }\n',
    "broken.json": "{",
    "times.json": '{"in":{"raw":"ICAg","list":[1,"2025-01-16T01:15:30Z"]}}',
    "double.blobl": "root.n = this.n * 2\n",
    "sub/other.yaml": (
        "pipeline:\n"
        "  processors:\n"
        "    - mapping: root = content().uppercase()\n"
        "    - label: last\n"
        '      mapping: root = content() + "!"\n'
    ),
    "times.yaml": (
        "pipeline:\n"
        "  processors:\n"
        "    - mapping: |\n"
        '        root.at = "2025-01-16T01:15:30Z".ts_parse("2006-01-02T15:04:05Z07:00")\n'
        '        root.in.raw = "   ".bytes()\n'
        "        root.in.list = [this.n, root.at]\n"
    ),
    "config.yaml": (
        "input:\n"
        "  stdin: {}\n"
        "  processors: [{ mapping: 'root = \"of the input\"' }]\n"
        "pipeline:\n"
        "  processors:\n"
        "    - label: first\n"
        "      mapping: root.v = this.v + 1\n"
        "    - try:\n"
        "        - label: inner\n"
        "          mapping: root.v = this.v * 10\n"
        "        - mapping: root.w = this.v\n"
        "    - mapping: |\n"
        "        root = this\n"
        '        root.replaced = "${VERDICTS_NAME:nobody}"\n'
        '        root.asked = env("VERDICTS_NAME")\n'
        "processor_resources:\n"
        "  - label: shared\n"
        '    mapping: root = "shared"\n'
    ),
}


def doc(condition: str, content: str = '{"a":1,"b":[1,2,{"c":"x"}]}', metadata: str = "{}") -> str:
    return (
        f"input_batch: [{{content: {json.dumps(content)}, metadata: {metadata}}}]\n"
        f"output_batches: [[{{{condition}}}]]"
    )


RIGHT = {
    "bloblang true": doc("bloblang: this.a == 1"),
    "bloblang on content": doc('bloblang: content() == "x"', "x"),
    "bloblang metadata": doc("bloblang: '@k == \"v\" && batch_size() == 1'", "x", "{k: v}"),
    "content equal": doc("content_equals: x", "x"),
    "content from a number": doc("content_equals: 5", "5"),
    "content empty": doc("content_equals: ''", ""),
    "pattern found inside": doc("content_matches: 'b+'", "abbbc"),
    "pattern anchored": doc("content_matches: '^a.c$'", "abc"),
    "metadata equal": doc("metadata_equals: {k: v}", "x", "{k: v, more: 1}"),
    "metadata number": doc("metadata_equals: {k: 5}", "x", "{k: 5.0}"),
    "metadata list": doc("metadata_equals: {k: [1, a]}", "x", "{k: [1, a]}"),
    "metadata object": doc("metadata_equals: {k: {a: 1}}", "x", "{k: {a: 1}}"),
    "metadata null": doc("metadata_equals: {k: null}", "x", "{k: null}"),
    "metadata bool": doc("metadata_equals: {k: true}", "x", "{k: true}"),
    "metadata bool of a number": doc("metadata_equals: {k: true}", "x", "{k: 1}"),
    "metadata none asked": doc("metadata_equals: {}", "x", "{k: true}"),
    "file equal": doc("file_equals: ./text.txt", "hello\nworld\n"),
    "file json": doc("file_json_equals: doc.json", '{"a":"x","b":[1,2]}'),
    "file json contains": doc("file_json_contains: doc.json", '{"c":0,"a":"x","b":[1,2]}'),
    "file json contains more items": doc("file_json_contains: doc.json", '{"a":"x","b":[1,2,3]}'),
    "json equal": doc("json_equals: {b: [1, 2, {c: x}], a: 1}"),
    "json equal as a text": doc('json_equals: \'{"b": [1, 2, {"c": "x"}], "a": 1}\''),
    **{
        f"{condition} times and bytes": (
            "target_processors: times.yaml#/pipeline/processors\n"
            "input_batch: [{json_content: {n: 1}}]\n"
            f"output_batches: [[{{{condition}: {value}}}]]"
        )
        for condition, value in {
            "json_equals": (
                '{at: "2025-01-16T01:15:30Z", in: {raw: ICAg, list: [1.0, "2025-01-16T01:15:30Z"]}}'
            ),
            "json_contains": '{at: "2025-01-16T01:15:30Z", in: {raw: ICAg, list: [1]}}',
            "file_json_contains": "times.json",
        }.items()
    },
    "json null": doc("json_equals: null", "null"),
    "json scalar": doc("json_equals: 5", "5"),
    "json text scalar": doc("json_equals: '\"x\"'", '"x"'),
    "json contains fields": doc("json_contains: {a: 1}"),
    "json contains items": doc("json_contains: {b: [1, 2]}"),
    "json contains deep": doc("json_contains: {b: [1, 2, {}]}"),
    "json contains nothing": doc("json_contains: {}"),
    "all conditions together": doc(
        "bloblang: this.a == 1, json_contains: {a: 1}, metadata_equals: {k: v}, content_matches: a",
        '{"a":1}',
        "{k: v}",
    ),
    "no conditions": doc("", "anything"),
    "json content": (
        "input_batch: [{json_content: {b: '<x&y>', a: [1, 2.5, null]}}]\n"
        'output_batches: [[{content_equals: \'{"a":[1,2.5,null],"b":"\\u003cx\\u0026y\\u003e"}\'}]]'
    ),
    "file content": (
        "input_batch: [{file_content: text.txt}]\n"
        'output_batches: [[{content_equals: "hello\\nworld\\n"}]]'
    ),
    "file content wins": (
        "input_batch: [{content: a, json_content: b, file_content: text.txt}]\n"
        "output_batches: [[{content_matches: hello}]]"
    ),
    "json content wins": (
        "input_batch: [{content: a, json_content: b}]\n"
        "output_batches: [[{content_equals: '\"b\"'}]]"
    ),
    "batches in their order": (
        "input_batches: [[{content: a}], [{content: b}, {content: c}]]\n"
        "input_batch: [{content: d}]\n"
        "output_batches: [[{content_equals: a}], [{content_equals: b}, {}], [{content_equals: d}]]"
    ),
    "nothing in, nothing out": "output_batches: []",
    "nothing listed, nothing out": "input_batch: []",
    "all processors": (
        "target_processors: config.yaml#/pipeline/processors\n"
        "input_batch: [{json_content: {v: 1}}]\n"
        "output_batches: [[{json_equals: {w: 20, replaced: nobody, asked: null}}]]"
    ),
    "one processor": (
        "target_processors: config.yaml#/pipeline/processors/0\n"
        "input_batch: [{json_content: {v: 1}}]\noutput_batches: [[{json_equals: {v: 2}}]]"
    ),
    "processors inside of one": (
        "target_processors: config.yaml#/pipeline/processors/1/try\n"
        "input_batch: [{json_content: {v: 1}}]\noutput_batches: [[{json_equals: {w: 10}}]]"
    ),
    "processors of the input": (
        "target_processors: config.yaml#/input/processors\n"
        "input_batch: [{content: a}]\noutput_batches: [[{content_equals: of the input}]]"
    ),
    "a label": (
        "target_processors: config.yaml#inner\n"
        "input_batch: [{json_content: {v: 1}}]\noutput_batches: [[{json_equals: {v: 10}}]]"
    ),
    "a resource": (
        "target_processors: config.yaml#/processor_resources/0\n"
        "input_batch: [{content: a}]\noutput_batches: [[{content_equals: shared}]]"
    ),
    "a resource's label": (
        "target_processors: config.yaml#shared\n"
        "input_batch: [{content: a}]\noutput_batches: [[{content_equals: shared}]]"
    ),
    "a file below": (
        "target_processors: sub/other.yaml#/pipeline/processors\n"
        "input_batch: [{content: a}]\noutput_batches: [[{content_equals: A!}]]"
    ),
    "a mapping": (
        "target_mapping: ./double.blobl\n"
        "input_batch: [{json_content: {n: 4}}]\noutput_batches: [[{json_equals: {n: 8}}]]"
    ),
    "a mapping that fails keeps the message": (
        "target_mapping: ./double.blobl\n"
        "input_batch: [{content: x}]\noutput_batches: [[{content_equals: x, bloblang: errored()}]]"
    ),
    "environment in the config and in a mapping": (
        "target_processors: config.yaml#/pipeline/processors/2\n"
        "environment: {VERDICTS_NAME: me}\n"
        "input_batch: [{content: '{}'}]\n"
        "output_batches: [[{json_equals: {replaced: me, asked: me}}]]"
    ),
    "environment is not replaced in tests": (
        "environment: {VERDICTS_NAME: me}\n"
        "input_batch: [{content: '${VERDICTS_NAME}'}]\n"
        "output_batches: [[{content_equals: '${VERDICTS_NAME}'}]]"
    ),
    "a mock by pointer": (
        "target_processors: config.yaml#/pipeline/processors\n"
        "mocks: {/pipeline/processors/1: {mapping: 'root.mocked = this.v'}}\n"
        "input_batch: [{json_content: {v: 1}}]\noutput_batches: [[{json_contains: {mocked: 2}}]]"
    ),
    "a mock behind the last": (
        "target_processors: config.yaml#/pipeline/processors\n"
        "mocks: {/pipeline/processors/-: {mapping: 'root.last = true'}}\n"
        "input_batch: [{json_content: {v: 1}}]\noutput_batches: [[{json_contains: {last: true}}]]"
    ),
    "a mock for a whole list": (
        "target_processors: config.yaml#/pipeline/processors\n"
        "mocks: {/pipeline/processors: {mapping: 'root = \"mocked\"'}}\n"
        "input_batch: [{content: a}]\noutput_batches: [[{content_equals: mocked}]]"
    ),
    "a mock in a list that is left out": (
        "target_processors: /output/processors\n"
        "mocks: {/output/processors/-: {mapping: 'root = \"mocked\"'}}\n"
        "input_batch: [{content: a}]\noutput_batches: [[{content_equals: mocked}]]"
    ),
    "a mock by label, inside": (
        "target_processors: config.yaml#/pipeline/processors\n"
        "mocks: {inner: {mapping: 'root.v = \"mocked\"'}}\n"
        "input_batch: [{json_content: {v: 1}}]\noutput_batches: [[{json_contains: {w: mocked}}]]"
    ),
    "a mocked label is still the target's": (
        "target_processors: config.yaml#inner\n"
        "mocks: {/pipeline/processors/1/try/0: {mapping: 'root.v = \"mocked\"'}}\n"
        "input_batch: [{json_content: {v: 1}}]\noutput_batches: [[{json_equals: {v: mocked}}]]"
    ),
    "a mocked resource": (
        "target_processors: config.yaml#shared\n"
        "mocks: {shared: {mapping: 'root = \"mocked\"'}}\n"
        "input_batch: [{content: a}]\noutput_batches: [[{content_equals: mocked}]]"
    ),
}

WRONG = {
    "bloblang false": doc("bloblang: this.a == 2"),
    "bloblang not a bool": doc("bloblang: this.a"),
    "bloblang fails": doc('bloblang: this.a.uppercase() == "A"'),
    "bloblang deleted": doc("bloblang: root = deleted()"),
    "content differs": doc("content_equals: y", "x"),
    "content with a line end": doc("content_equals: x", "x\n"),
    "content empty expected": doc("content_equals: ''", "x"),
    "content of several lines": doc('content_equals: "a\\nb\\nc"', "a\nX\nc"),
    "pattern not found": doc("content_matches: '^b'", "abc"),
    "metadata differs": doc("metadata_equals: {k: w}", "x", "{k: v}"),
    "metadata missing": doc("metadata_equals: {k: v}", "x", "{l: v}"),
    "metadata missing for null": doc("metadata_equals: {k: null}", "x"),
    "metadata number for a text": doc("metadata_equals: {k: 5}", "x", "{k: '5'}"),
    "metadata text for a number": doc("metadata_equals: {k: '5'}", "x", "{k: 5}"),
    "metadata number for a bool": doc("metadata_equals: {k: 1}", "x", "{k: true}"),
    "metadata shorter list": doc("metadata_equals: {k: [1]}", "x", "{k: [1, 2]}"),
    "file differs": doc("file_equals: text.txt", "hello"),
    "file missing": doc("file_equals: nope.txt", "hello"),
    "file json differs": doc("file_json_equals: doc.json", '{"a":"x","b":[1,3]}'),
    "file json has less": doc("file_json_equals: doc.json", '{"a":"x","b":[1,2],"c":0}'),
    "file json missing": doc("file_json_equals: nope.json"),
    "file json broken": doc("file_json_equals: broken.json"),
    "file json of a text": doc("file_json_equals: doc.json", "x"),
    "file json contains not": doc("file_json_contains: doc.json", '{"a":"x"}'),
    "file json contains missing": doc("file_json_contains: nope.json"),
    "json value differs": doc("json_equals: {a: 2, b: [1, 2, {c: x}]}"),
    "json more fields": doc("json_equals: {a: 1}"),
    "json fewer fields": doc("json_equals: {a: 1, b: [1, 2, {c: x}], d: 0}"),
    "json more items": doc("json_equals: {a: 1, b: [1, 2]}"),
    "json type differs": doc("json_equals: {a: '1', b: [1, 2, {c: x}]}"),
    "json bool for a number": doc("json_equals: true", "1"),
    "json of a text": doc("json_equals: {a: 1}", "x"),
    "json condition is no json": doc("json_equals: hello", '"hello"'),
    "json contains differs": doc("json_contains: {a: 2}"),
    "json contains missing": doc("json_contains: {d: null}"),
    "json contains more items": doc("json_contains: {b: [1, 2, {c: x}, 3]}"),
    "json contains items in another order": doc("json_contains: {b: [2]}"),
    "json contains of a text": doc("json_contains: {}", "x"),
    "two conditions": doc("json_contains: {a: 2}, content_equals: x"),
    "a batch too few": "input_batch: [{content: a}]\noutput_batches: [[{}], [{}]]",
    "a batch too many": "input_batches: [[{content: a}], [{content: b}]]\noutput_batches: [[{}]]",
    "a message too few": "input_batch: [{content: a}]\noutput_batches: [[{}, {}]]",
    "a message too many": "input_batch: [{content: a}, {content: b}]\noutput_batches: [[{}]]",
    "nothing expected": "input_batch: [{content: a}]",
    "a missing file of a message": (
        "input_batch: [{file_content: nope.txt}]\noutput_batches: [[{}]]"
    ),
    "no such pointer": (
        "target_processors: config.yaml#/pipeline/processors/7\n"
        "input_batch: [{content: a}]\noutput_batches: [[{}]]"
    ),
    "no such label": (
        "target_processors: config.yaml#nobody\ninput_batch: [{content: a}]\noutput_batches: [[{}]]"
    ),
    "no such file": (
        "target_processors: nope.yaml#/pipeline/processors\n"
        "input_batch: [{content: a}]\noutput_batches: [[{}]]"
    ),
    "not a processor": (
        "target_processors: config.yaml#/input/stdin\n"
        "input_batch: [{content: a}]\noutput_batches: [[{}]]"
    ),
    "a web page": (
        "target_processors: https://example.com#/pipeline/processors\n"
        "input_batch: [{content: a}]\noutput_batches: [[{}]]"
    ),
    "no such mapping": (
        "target_mapping: ./nope.blobl\ninput_batch: [{content: a}]\noutput_batches: [[{}]]"
    ),
    "nothing to mock": (
        "mocks: {nobody: {mapping: root = this}}\n"
        "input_batch: [{content: a}]\noutput_batches: [[{}]]"
    ),
    "a mock that is none": (
        "target_processors: config.yaml#/pipeline/processors/0\n"
        "mocks: {first: {no_such_processor: {}}}\n"
        "input_batch: [{content: a}]\noutput_batches: [[{}]]"
    ),
    "a failed message says why": (
        "target_processors: config.yaml#/pipeline/processors/0\n"
        "input_batch: [{json_content: {v: x}}]\noutput_batches: [[{json_equals: {v: 1}}]]"
    ),
}
