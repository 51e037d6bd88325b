"""What a task waits for is heard at once, but not at every try."""

from __future__ import annotations

import queue
import socket
from typing import Any

from streamer.engine.report.task_log_channel import TaskLogReceiver, TaskLogSender, encode_report


def test_what_a_task_waits_for_is_heard_but_ever_more_seldom():
    heard: queue.Queue[Any] = queue.Queue()
    ear = TaskLogReceiver(lambda *line: heard.put(line))
    clock = [0.0]
    voice = TaskLogSender(ear.address, lambda: clock[0])
    told = []
    for second in range(0, 100):
        clock[0] = second / 2
        voice.send("WARN", f"at {clock[0]:g}", {"path": "root.output"})
    try:
        for _ in range(5):
            told.append(heard.get(timeout=60))
    finally:
        ear.close()
    # What lasts no second is not worth a word.
    assert [text for _, text, _ in told] == ["at 1", "at 3", "at 7", "at 15", "at 31"]
    assert told[0] == ("WARN", "at 1", {"path": "root.output"})
    assert heard.empty()


def test_what_others_say_is_not_heard():
    heard: queue.Queue[Any] = queue.Queue()
    ear = TaskLogReceiver(lambda *line: heard.put(line))
    host, port, token = ear.address.split(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        for data in (b"x", b"[]", b'["' + b"0" * 32 + b'","WARN","false",{}]'):
            other.sendto(data, (host, int(port)))
        other.sendto(f'["{token}","WARN","true",{{}}]'.encode(), (host, int(port)))
    try:
        assert heard.get(timeout=60) == ("WARN", "true", {})
        assert heard.empty()
    finally:
        ear.close()


def test_what_tasks_have_read_is_told_apart_from_what_they_wait_for():
    heard: queue.Queue[Any] = queue.Queue()
    ear = TaskLogReceiver(lambda *line: heard.put(line), lambda a, b, c, d: heard.put((a, b, c, d)))
    host, port, token = ear.address.split(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        for body in (
            encode_report("0" * 32, 1, 2, 3, 4),
            encode_report(token, 1, 2, 3, 4),
            f'["{token}","read",1]'.encode(),
            f'["{token}","WARN","true",{{}}]'.encode(),
        ):
            other.sendto(body, (host, int(port)))
    try:
        assert heard.get(timeout=60) == (1, 2, 3, 4)
        assert heard.get(timeout=60) == ("WARN", "true", {})
        assert heard.empty()
    finally:
        ear.close()


def test_without_an_ear_nothing_is_said():
    TaskLogSender("", lambda: 10.0).send("WARN", "x", {})
