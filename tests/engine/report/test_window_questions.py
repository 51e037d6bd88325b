"""Questions about open windows, from who asks to the tasks and back."""

from __future__ import annotations

from streamer.engine.report.window_questions import MAX_QUESTIONS, WindowQuestions
from streamer.window.inspect.window_query import WindowListing, WindowQuery, WindowRow

ADA = WindowQuery(key="ada")


def test_a_question_is_passed_on_once_in_two_seconds_while_somebody_asks() -> None:
    at = [100.0]
    woken: list[float] = []
    questions = WindowQuestions(lambda: at[0], lambda: round(at[0]))
    questions.wake = lambda: woken.append(at[0])
    assert questions.take() == ""
    assert questions.request(ADA)
    assert WindowQuery.from_json(questions.take()) == ADA
    assert not questions.request(ADA)
    assert questions.take() == "" and woken == [100.0]
    at[0] = 102.0
    assert questions.take() == ADA.to_json()
    assert not questions.request(ADA) and woken == [100.0, 102.0]
    at[0] = 118.0
    assert questions.take() == ""  # Nobody has asked for a while.
    assert questions.request(ADA)


def test_answers_of_all_shards_are_kept_with_their_time() -> None:
    questions = WindowQuestions(lambda: 0.0, lambda: 77)
    questions.request(ADA)
    assert questions.answer_to(ADA) is None
    listing = WindowListing([WindowRow("ada", 1, 2, 3)], 1)
    answers = {ADA.to_json(): {**listing.to_dict(), "contents": [{"start": 1}]}}
    questions.record([{"answers": answers, "buffer": "one"}, {}, {"answers": answers}])
    answer = questions.answer_to(ADA)
    assert answer is not None and answer.at == 77
    assert [one.buffer for one in answer.shards] == ["one", ""]
    assert answer.shards[0].listing == listing and answer.shards[0].contents == [{"start": 1}]
    questions.record([{"now": 3}])
    assert questions.answer_to(ADA) == answer


def test_few_questions_are_kept_however_many_ask() -> None:
    questions = WindowQuestions(lambda: 0.0)
    for number in range(100):
        questions.request(WindowQuery(key=str(number)))
    assert len(questions.take().splitlines()) == MAX_QUESTIONS
