/** A stream's windows as the API lists them: what is drawn of them, and how they are described. */

import { clock, number } from "./words.js";

/** How much of the line lies before now, in lengths of a window. */
const BEFORE = 5;
const REASONS = { final: "closed", flush: "closed as the input ended", idle: "closed, since no message came", expired: "expired", retracted: "result taken back" };
/** What a window is that has not just closed. */
const STATES = { expired: "expired", retracted: "retracted" };

/** Why messages were dropped, in a few words and in a sentence. */
export const DROP_WORDS = {
  late: ["late", "All windows that the messages belong to had closed before they came."],
  expired: ["of an expired window", "Their windows were not emitted in time under back pressure."],
  future: ["too far ahead", "Their event times are too far ahead of the system clock (max_ahead)."],
  timestamp: ["without a time", "timestamp_mapping gave no time."],
  key: ["without a key", "key_mapping gave no key."],
  incomplete: ["of an incomplete window", "The input ended before their count window was full."],
};

/** What closes the windows: the system clock, or event time, which may be of another year. */
export function clockOf(listed, now) {
  if (listed.clock !== "event") return now;
  const ends = [...listed.windows, ...(listed.closed ?? [])].map((one) => Date.parse(one.end)).filter(Number.isFinite);
  return listed.event_time ? Date.parse(listed.event_time) : Math.max(...ends, 0) || now;
}

/** Return what the API lists of one buffer; of a stream with one buffer, all of it. */
export function ofBuffer(listed, buffer) {
  if (!listed.buffers?.[buffer]) return listed;
  const mine = (one) => one.buffer === buffer;
  return {
    ...listed,
    ...listed.buffers[buffer],
    windows: listed.windows.filter(mine),
    closed: (listed.closed ?? []).filter(mine),
  };
}

/** The windows that are worth a bar: all that are open and have bounds, and the newest that closed. */
export function barsOf(listed, now) {
  const all = rowsOf(listed).filter((one) => Number.isFinite(one.to));
  const sizes = all.map((one) => one.to - one.from).filter((one) => one > 0);
  const usual = sizes.sort((a, b) => a - b)[sizes.length >> 1] ?? 60_000;
  const bars = all.filter((one) => one.to > now - usual * BEFORE || one.state === "open");
  // Windows that several keys share are drawn once; the table has each key.
  const shared = bars.some((one) => one.state === "open" && !one.key);
  return (shared ? bars.filter((one) => !one.key || one.state !== "open") : bars).sort((a, b) => a.from - b.from || a.to - b.to);
}

/** All windows that are listed, open and closed. */
export function rowsOf(listed) {
  const open = listed.windows.map((one) => rowOf(one, "open"));
  const closed = (listed.closed ?? []).map((one) => rowOf(one, STATES[one.reason] ?? "closed"));
  // A window that comes out again, since a late message changed it, is one row.
  const by = new Map();
  for (const one of [...closed, ...open]) {
    const before = by.get(one.name);
    by.set(one.name, { ...before, ...one, hidden: one.state === "open" && before?.state === "retracted" });
  }
  return [...by.values()];
}

function rowOf(one, state) {
  const [from, to] = [Date.parse(one.start ?? one.end), Date.parse(one.end)];
  // The end of a session moves with its messages: it is the same window, and so the same row.
  const place = one.start ?? one.end;
  const name = JSON.stringify([one.buffer ?? "", one.side ?? "", one.key ?? "", place]);
  return { ...one, state, from, to, name };
}

/** Say when and why an open window closes. */
export function closing(row) {
  const at = row.closes ? clock(Date.parse(row.closes)) : "";
  const words = {
    event_time: `closes when event time reaches ${at}`,
    key_time: `closes when the event time of its key reaches ${at}`,
    clock: `closes at ${at}`,
    message: "each message comes out with it",
    count: `closes after ${number(row.messages_missing ?? 0, "more message", "more messages")}`,
    never: "never closes",
  }[row.closes_by ?? "clock"];
  const idle = row.closes_idle ? `, or at ${clock(Date.parse(row.closes_idle))} if no message comes` : "";
  return words + idle;
}

/** Say what became of a window. */
export function stateWords(row) {
  if (row.state === "open") return `open, ${closing(row)}${row.hidden ? `; its result was taken back at ${clock(Date.parse(row.at))}` : ""}`;
  return `${REASONS[row.reason] ?? "closed"} at ${clock(Date.parse(row.at))}`;
}

/** Say what a window is, in a sentence. */
export function sentence(row) {
  const key = row.key === null || row.key === undefined ? "" : ` of ${row.key}`;
  const bounds = row.start ? `${clock(row.from)} to ${clock(row.to)}` : row.end ? `that ended at ${clock(row.to)}` : "without bounds";
  const count = row.messages === null ? "" : ` ${number(row.messages, "message")},`;
  return `Window${key} ${bounds}:${count} ${stateWords(row)}`;
}
