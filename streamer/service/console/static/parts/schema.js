/** What the JSON schema of configs proposes at a place of a config. */

/**
 * A proposal.
 * @typedef {object} Proposal
 * @property {string} name what is proposed
 * @property {string} about one line about it
 * @property {string} note what kind of thing it is, in a word or two
 * @property {"field" | "object" | "list" | "value"} kind how it is written
 */

/**
 * Return what may be typed.
 * @param {object} schema of configs
 * @param {import("./yaml_text.js").Cursor} cursor
 * @returns {Proposal[]}
 */
export function proposals(schema, { path, what, beside }) {
  const nodes = path.reduce(
    (found, step) => found.flatMap((one) => stepped(schema, one, step)),
    flat(schema, schema),
  );
  return what === "key" ? fields(schema, nodes, new Set(beside)) : values(nodes);
}

/** A schema and all that it refers to or is made of, each by itself. */
function flat(schema, node) {
  if (node.$ref) return flat(schema, schema.definitions[node.$ref.split("/").at(-1)]);
  const parts = [...(node.allOf ?? []), ...(node.anyOf ?? []), ...(node.oneOf ?? [])];
  return [node, ...parts.flatMap((one) => flat(schema, one))];
}

function stepped(schema, node, step) {
  if (step === "[]") return node.items ? flat(schema, node.items) : [];
  const child = node.properties?.[step];
  if (child) return flat(schema, child);
  const more = node.additionalProperties;
  return more && typeof more === "object" ? flat(schema, more) : [];
}

function fields(schema, nodes, beside) {
  const found = new Map();
  for (const node of nodes) {
    const names = componentNames(node);
    const named = names.some((name) => beside.has(name));
    for (const [name, field] of Object.entries(node.properties ?? {})) {
      if (beside.has(name) || found.has(name) || field.deprecated) continue;
      if (named && names.includes(name)) continue;
      found.set(name, proposal(name, flat(schema, field), names.includes(name)));
    }
  }
  const all = [...found.values()];
  const isComponent = (one) => one.note === "component";
  return [...all.filter(isComponent), ...all.filter((one) => !isComponent(one))];
}

/** The names of components, of a schema of a kind of them. */
function componentNames(node) {
  return (node.then?.oneOf ?? []).flatMap((one) => one.required ?? []).filter((n) => n !== "type");
}

function proposal(name, nodes, component) {
  const about = nodes.find((one) => one.description)?.description ?? "";
  const list = nodes.some((one) => one.type === "array");
  const object = nodes.some((one) => one.type === "object" && (one.properties || component));
  const given = nodes.find((one) => one.default !== undefined)?.default;
  const shown = given === undefined || typeof given === "object" ? "" : ` = ${short(given)}`;
  const kind = list ? "list" : object ? "object" : "field";
  const type = kind === "field" ? typeOf(nodes) : kind;
  return { name, about: firstSentence(about), note: component ? "component" : type + shown, kind };
}

function typeOf(nodes) {
  if (nodes.some((one) => one.enum)) return "choice";
  const types = nodes.flatMap((one) => one.type ?? []);
  for (const type of ["integer", "number", "boolean", "object"]) {
    if (types.includes(type) && !(types.includes("string") && nodes.length === 1)) return type;
  }
  return types.includes("string") ? "string" : "any";
}

function values(nodes) {
  const found = new Map();
  const about = firstSentence(nodes.find((one) => one.description)?.description ?? "");
  const given = nodes.find((one) => one.default !== undefined)?.default;
  const put = (value, note) => {
    const name = String(value);
    if (name && !found.has(name) && name.length < 60 && !/[\n#]|: /.test(name)) {
      found.set(name, { name, about, note: value === given ? "default" : note, kind: "value" });
    }
  };
  for (const node of nodes) for (const value of node.enum ?? []) put(value, "choice");
  if (nodes.some((one) => one.type === "boolean"))
    for (const value of [true, false]) put(value, "");
  if (typeof given !== "object" && given !== undefined) put(given, "default");
  for (const node of nodes) {
    for (const value of node.examples ?? []) if (typeof value !== "object") put(value, "example");
  }
  return [...found.values()];
}

function short(value) {
  const text = JSON.stringify(value);
  return text.length > 20 ? `${text.slice(0, 20)}…` : text;
}

function firstSentence(text) {
  const line = text.split("\n")[0];
  return (/^.*?[.](?=\s|$)/.exec(line)?.[0] ?? line).slice(0, 200);
}
