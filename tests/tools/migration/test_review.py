from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamer.config import LintOptions, lint_config
from streamer.sdk.spec import Kind
from streamer.tools.migration.review import (
    Verdict,
    count_missing,
    group_differences,
    review_config,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
class TestReviewConfig:
    def test_a_config_that_runs(self) -> None:
        Path("a.yaml").write_text("output: {drop: {}}\n")
        review = review_config("a.yaml", {})
        assert (review.verdict, review.missing, review.findings) == (Verdict.RUNS, (), ())

    def test_findings(self) -> None:
        Path("a.yaml").write_text("input: {kafka: {addresses: [a], topics: [b], wait: 1}}\n")
        review = review_config("a.yaml", {})
        assert review.verdict == Verdict.NEEDS_CHANGES
        assert [one.code for one in review.findings] == ["unknown_field"]

    def test_missing_components_are_no_findings(self) -> None:
        Path("a.yaml").write_text(
            "input:\n  zmq4: {urls: [a]}\npipeline:\n  processors:\n    - my_plugin: {}\n"
        )
        review = review_config("a.yaml", {})
        assert review.verdict == Verdict.LACKS_COMPONENTS
        found = [(one.kind, one.name, one.line, one.column, one.is_known) for one in review.missing]
        assert found == [
            (Kind.INPUT, "zmq4", 2, 3, True),
            (Kind.PROCESSOR, "my_plugin", 5, 7, False),
        ]
        assert review.findings == ()

    def test_variables_need_not_be_set(self) -> None:
        Path("a.yaml").write_text("output: {file: {path: '${WHERE}'}}\n")
        assert review_config("a.yaml", {}).verdict == Verdict.RUNS

    def test_a_config_is_linted_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from streamer.tools.migration import review

        linted: list[str] = []
        original = review.lint_config

        def lint_and_count(file: str, **more: Any) -> Any:
            linted.append(file)
            return original(file, **more)

        monkeypatch.setattr(review, "lint_config", lint_and_count)
        Path("a.yaml").write_text("input: {generate: {mapping: root = 1, counts: 1}}\n")
        assert [one.code for one in review_config("a.yaml", {}).findings] == ["unknown_field"]
        assert linted == ["a.yaml"]

    def test_warnings_are_no_findings(self) -> None:
        Path("a.yaml").write_text("cache_resources: [{label: a, memory: {}}]\ninput: {stdin: {}}\n")
        assert [one.code for one in lint_config("a.yaml", options=LintOptions(thorough=True))] == [
            "unused_resource"
        ]
        assert review_config("a.yaml", {}).verdict == Verdict.RUNS

    @pytest.mark.parametrize("text", ["a: [", "- 1", "", "a"])
    def test_what_is_no_config(self, text: str) -> None:
        Path("a.yaml").write_text(text)
        review = review_config("a.yaml", {})
        assert review.verdict == Verdict.NEEDS_CHANGES

    def test_a_file_that_is_not_there(self) -> None:
        review = review_config("none.yaml", {})
        assert review.verdict == Verdict.NEEDS_CHANGES
        assert "none.yaml" in str(review.findings[0])

    def test_unit_tests_are_counted_beside_it_too(self) -> None:
        one = "tests: [{name: a, input_batch: [], output_batches: []}]\n"
        Path("a.yaml").write_text(one)
        Path("a_benthos_test.yaml").write_text(one)
        assert review_config("a.yaml", {}).tests == 2


@pytest.mark.usefixtures("folder")
class TestManyConfigs:
    def test_missing_ones_are_counted_once_a_config(self) -> None:
        for name, text in {
            "a.yaml": "output: {broker: {outputs: [{pusher: {}}, {pusher: {}}]}}\n",
            "b.yaml": "input: {zmq4: {}}\noutput: {pusher: {}}\n",
        }.items():
            Path(name).write_text(text)
        reviews = [review_config(name, {}) for name in ("a.yaml", "b.yaml")]
        assert count_missing(reviews) == [((Kind.OUTPUT, "pusher"), 2), ((Kind.INPUT, "zmq4"), 1)]

    def test_equal_differences_are_one(self) -> None:
        for name in ("a.yaml", "b.yaml"):
            Path(name).write_text("pipeline:\n  threads: 2\n")
        groups = group_differences([review_config(name, {}) for name in ("a.yaml", "b.yaml")])
        places = {one.subject: found for one, found in groups.items()}
        assert places["threads"] == ["a.yaml:2", "b.yaml:2"]
        assert places["checkpoint"] == ["a.yaml", "b.yaml"]
