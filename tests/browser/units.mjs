// Checks the parts of the gateway's page that need no browser, at every cut of their input: `node units.mjs PAGE`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const script = readFileSync(process.argv[2], "utf8").split("<script>")[1].split("</script>")[0];
const between = (from, to) => {
  const [start, end] = [script.indexOf(from), script.indexOf(to)];
  assert(start >= 0 && end > start, `${from} .. ${to}`);
  return script.slice(start, end);
};
const source = between("/** Reads server-sent", "// ---- Text and calls") + between("/** Indents JSON", "/** A text that grows");
const { EventParser, JsonIndenter } = new Function(`${source} return { EventParser, JsonIndenter };`)();

function indent(pieces) {
  const runs = [];
  const indenter = new JsonIndenter((text, style) => text && runs.push([text, style]));
  for (const piece of pieces) indenter.push(piece);
  indenter.finish();
  return { text: runs.map(([text]) => text).join(""), isRaw: indenter.isRaw, isComplete: indenter.isComplete, runs };
}

/** JSON is indented as `JSON.stringify` would, and each cut of it shows a beginning of that. */
function checkJson(json) {
  const { text, isRaw, isComplete } = indent([json]);
  assert(!isRaw && isComplete, json);
  assert.deepEqual(JSON.parse(text), JSON.parse(json));
  if (!json.includes("\\u")) assert.equal(text, JSON.stringify(JSON.parse(json), null, 2));
  assert.equal(indent([...json]).text, text, "one character at a time");
  for (let cut = 0; cut < json.length; cut += 1) {
    assert.equal(indent([json.slice(0, cut), json.slice(cut)]).text, text);
    const part = indent([json.slice(0, cut)]);
    assert(!part.isRaw && (text.startsWith(part.text) || json.includes("\\u")), part.text);
    if (/["[{]/.test(json[0])) assert(!part.isComplete, json.slice(0, cut));
  }
}

/** Text that is not JSON loses nothing: only white space is added. */
function checkRaw(text) {
  const whole = indent([text]);
  assert(whole.isRaw && !whole.isComplete, text);
  const bare = (some) => some.replace(/\s/g, "");
  assert.equal(bare(whole.text), bare(text));
  assert.equal(indent([...text]).text, whole.text);
}

/** An escape is shown as its letter, if it has one that can be seen. */
function checkEscape(json, expected) {
  assert.equal(indent([json]).text, expected);
  assert.equal(indent([...json]).text, expected);
}

checkJson('{"a":1,"b":[true,false,null,-1.5,20],"c":{},"d":[],"e":"x\\"y\\\\","f":[{"g":{}},[[]]]}');
checkJson("[]");
checkJson('"text: {[,]}"');
checkJson("12");
checkJson('{"a":"\\u00e6\\ud83d\\ude00\\u000a\\u0022\\u202e"}');
for (const text of ["{a:1}", "hello", '{"a":1]', '{"a" 1}', "[1 2]", "{,}", "[1,]x", '{"a":tru}', "01x", "nullx", '{"a":1}}', '["a""b"]']) checkRaw(text);
checkEscape('"\\u00e6\\ud83d\\ude00"', '"æ😀"');
checkEscape('"\\n\\u000a\\u0022\\u005c\\u202e\\u200b"', '"\\n\\u000a\\u0022\\u005c\\u202e\\u200b"');
for (const json of ['"\\ud83d"', '"\\ud83dx"', '"\\ud83d\\n"', '"\\ud83d\\u0041"', '"\\u12"', '"\\u12\\n"', '"\\ud83d\\u00"', '"\\\\u0041"', '"\\x"', '"\\ud83d', '"\\u00']) checkEscape(json, json);
checkEscape('{"a":"x\ny"}', '{\n  "a": "x\\ny"\n}');
checkEscape('{"a":1}{"b":2}', '{\n  "a": 1\n}\n{\n  "b": 2\n}');
assert.deepEqual(indent(['{"a":"b","c":1}']).runs.map(([, style]) => style).filter(Boolean), ["key", "key", "key", "string", "string", "string", "key", "key", "key", "word"]);

const stream = "retry: 1\r\nid: 1\r\ndata: a\r\n\r\n: ping\nid: 2\ndata:b\ndata: c\n\n: ping\nevent: x\rid:3\rdata: d:e\r\r\ndata\n\ndata: cut";
const events = [["a", "1"], ["b\nc", "2"], ["d:e", "3"], ["", "3"]];
function parse(pieces) {
  const found = [];
  const parser = new EventParser();
  for (const piece of pieces) parser.push(piece, (data, id) => found.push([data, id]));
  return found;
}
assert.deepEqual(parse([...stream]), events);
for (let cut = 0; cut <= stream.length; cut += 1) assert.deepEqual(parse([stream.slice(0, cut), "", stream.slice(cut)]), events);
