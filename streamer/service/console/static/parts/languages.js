/** What is coloured in the texts of editors: named groups, whose names are those of colours. */

/** YAML, with comments, keys, texts in quotes, variables, numbers and words of its own. */
export const YAML = new RegExp(
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
