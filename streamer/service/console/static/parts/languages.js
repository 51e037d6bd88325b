/** What is coloured in the texts of editors: named groups, whose names are those of colours. */

/** A line of YAML that ends with the mark of a block: what it holds stands below, deeper. */
const BLOCK = /^( *)(?:- +)*(?:(?<name>[\w.\-/]+) *: *)?[|>][-+0-9]*[ \t]*(?:#.*)?$/;
/** Fields that hold Bloblang, by the ends of their names. */
const MAPPING = /(?:^|_)(?:mapping|mutation|bloblang|check|filter|having|query|when|by|tag)$/;

/** YAML outside of blocks, with comments, keys, texts in quotes, variables, numbers and words of its own. */
const PLAIN_YAML = new RegExp(
  [
    "(?<comment>(?<=^|\\s)#[^\\n]*)",
    "(?<variable>\\$\\{[^}\\n]*\\})",
    "(?<key>(?<=^[ ]*(?:- +)*|[{,] *)[\\w.\\-/]+(?=\\s*:(?:\\s|$)))",
    "(?<string>\"(?:[^\"\\\\\\n]|\\\\.)*\"|(?<=[\\s\\[{,])'(?:[^'\\n]|'')*')",
    "(?<word>(?<=[:\\[,-] *)\\b(?:true|false|null)\\b|(?<=: *)[|>][-+]?(?=\\s*$))",
    "(?<number>(?<=[:\\[,-] +)-?\\d[\\d.]*(?:ns|us|ms|[smhd])?(?=[\\s,\\]}]|$))",
  ].join("|"),
  "gm",
);

/** Bloblang. */
export const BLOBLANG = new RegExp(
  [
    "(?<comment>#[^\\n]*)",
    '(?<string>"""[^]*?(?:"""|$)|"(?:[^"\\\\\\n]|\\\\.)*"?)',
    "(?<word>\\b(?:root|this|meta|let|map|import|from|if|else|match|true|false|null)\\b|[$@]\\w*|->|=>)",
    "(?<number>\\b\\d+(?:\\.\\d+)?\\b)",
    "(?<key>\\b\\w+(?=\\())",
  ].join("|"),
  "g",
);

/** JSON. */
export const JSON_TEXT = new RegExp(
  [
    '(?<key>"(?:[^"\\\\\\n]|\\\\.)*"(?=\\s*:))',
    '(?<string>"(?:[^"\\\\\\n]|\\\\.)*"?)',
    "(?<word>\\b(?:true|false|null)\\b)",
    "(?<number>-?\\b\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?\\b)",
  ].join("|"),
  "g",
);

/** Variables in texts. */
const VARIABLES = /(?<variable>\$\{[^}\n]*\})/g;

/**
 * A config: YAML, and in its blocks what these hold. What looks like a key in a mapping is none.
 * @param {string} text
 * @returns {Generator<[string, string]>} pieces with their colours
 */
export function* YAML(text) {
  const lines = text.split("\n");
  let plain = [];
  for (let at = 0; at < lines.length; ) {
    const head = BLOCK.exec(lines[at]);
    plain.push(lines[at]);
    at += 1;
    const end = head ? blockEnd(lines, at, head[1].length) : at;
    if (end === at) continue;
    yield* pieces(`${plain.join("\n")}\n`, PLAIN_YAML);
    const inside = lines.slice(at, end).join("\n") + (end < lines.length ? "\n" : "");
    yield* pieces(inside, MAPPING.test(head.groups.name ?? "") ? BLOBLANG : VARIABLES);
    plain = [];
    at = end;
  }
  yield* pieces(plain.join("\n"), PLAIN_YAML);
}

/** Where a block ends: at the first line that is not deeper than its first one. */
function blockEnd(lines, from, above) {
  let first = from;
  while (first < lines.length && !lines[first].trim()) first += 1;
  const depth = first < lines.length ? indentOf(lines[first]) : 0;
  if (depth <= above) return from;
  let end = first;
  while (end < lines.length && (!lines[end].trim() || indentOf(lines[end]) >= depth)) end += 1;
  return end;
}

function indentOf(line) {
  return line.length - line.trimStart().length;
}

/**
 * The pieces of a text, each with its colour, or without one.
 * @param {string} text
 * @param {RegExp | ((text: string) => Iterable<[string, string]>)} language
 * @returns {Generator<[string, string]>}
 */
export function* pieces(text, language) {
  if (typeof language === "function") {
    yield* language(text);
    return;
  }
  let done = 0;
  for (const found of text.matchAll(language)) {
    if (found.index > done) yield [text.slice(done, found.index), ""];
    const named = Object.entries(found.groups).find(([, part]) => part !== undefined);
    yield [found[0], named?.[0] ?? ""];
    done = found.index + found[0].length;
  }
  if (done < text.length) yield [text.slice(done), ""];
}
