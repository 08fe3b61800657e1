// Uses the gateway with OpenAI's library and `EventSource`, and prints what it observed as one JSON object:
// `gateway.mjs BASE_URL HASTY_URL`. The second gateway closes its views early. The working directory has the packages.
// `gateway.py` does the same with the library for Python.

import { createRequire } from "node:module";
import { argv, cwd } from "node:process";
import { join } from "node:path";

const require = createRequire(join(cwd(), "package.json"));
const { OpenAI } = require("openai");
const { EventSource } = require("eventsource");

const connect = (base) => new OpenAI({ baseURL: `${base}v1`, apiKey: "none", maxRetries: 0, timeout: 100_000 });
const client = connect(argv[2]);
const hasty = connect(argv[3]);

/** The id of a new stream, its chunks, and the headers of the response. */
async function create(prompt, { n = 3, headers, gateway = client } = {}) {
  const body = { model: "m", n, messages: [{ role: "user", content: prompt }], stream: true };
  const { data, response } = await gateway.chat.completions.create(body, { headers }).withResponse();
  return { id: response.headers.get("x-stream-id"), chunks: data, headers: response.headers };
}

const read = (path, options) => client.get(path, { stream: true, ...options });

async function soFar(path) {
  const { choices, unbraid } = await client.get(path);
  const simple = ({ index, message, finish_reason }) => ({ index, text: message.content, finish_reason });
  return { choices: choices.map(simple), state: unbraid.state };
}

async function all(chunks) {
  const list = [];
  for await (const chunk of await chunks) list.push(chunk);
  return list;
}

function joined(list, n) {
  const whole = Array(n).fill("");
  for (const chunk of list) for (const { index, delta } of chunk.choices) whole[index] += delta.content ?? "";
  return whole;
}

const texts = async (chunks, n = 3) => joined(await all(chunks), n);
const text = async (chunks) => (await texts(chunks, 1))[0];
const each = (n, make) => Promise.all([...Array(n).keys()].map(make));

/** The code of the error that a call throws; `null` if it throws none. */
async function codeOf(call) {
  try {
    await call();
    return null;
  } catch (error) {
    if (!(error instanceof OpenAI.APIError)) throw error;
    return error.code;
  }
}

async function finished() {
  const { id, chunks, headers } = await create("words");
  const created = await texts(chunks);
  const view = (index) => `/streams/${id}/choices/${index}?stream=true`;
  const { seq } = await client.get(`/streams/${id}`);
  return {
    created,
    request_id: headers.get("x-request-id"),
    choices: await each(3, (index) => text(read(view(index)))),
    resumed: await each(3, (index) => text(read(view(index), { headers: { "Last-Event-ID": "6" } }))),
    resumed_by_query: await each(3, (index) => text(read(`${view(index)}&after=6`))),
    snapshot: await each(3, (index) => text(read(`${view(index)}&from=snapshot`))),
    tail: await each(3, (index) => text(read(`${view(index)}&from=tail`))),
    after_the_end: (await client.get(`/streams/${id}/events?stream=true&after=${seq}`).asResponse()).status,
    so_far: await each(3, (index) => soFar(`/streams/${id}/choices/${index}`)),
    all_so_far: await soFar(`/streams/${id}/events`),
  };
}

async function cancelled() {
  const { id, chunks } = await create("endless", { n: 2 });
  const iterator = chunks[Symbol.asyncIterator]();
  for (;;) {
    const { value } = await iterator.next();
    if (value.choices[0].index === 1 && value.choices[0].delta.content) break;
  }
  const running = await soFar(`/streams/${id}/choices/0`);
  const answer = await client.delete(`/streams/${id}/choices/1`);
  const view = await all(read(`/streams/${id}/choices/1?stream=true`));
  // The other choice continues after the end of this one.
  let continued;
  for await (const chunk of await read(`/streams/${id}/choices/0?stream=true&from=tail`)) {
    continued = chunk.choices[0];
    if (continued) break;
  }
  const status = await client.post(`/streams/${id}/cancel`);
  const rest = await all({ [Symbol.asyncIterator]: () => iterator });
  const last = rest.at(-1).choices[0];
  return {
    running: { state: running.state, finish_reason: running.choices[0].finish_reason },
    answer,
    view_ends: view.at(-1).choices[0].finish_reason,
    continued: continued.finish_reason,
    end: status.end,
    post_ends: [last.index, last.finish_reason],
  };
}

async function cut() {
  const { id, chunks } = await create("cut");
  const got = [];
  const post = await codeOf(async () => {
    for await (const chunk of chunks) got.push(chunk);
  });
  const view = `/streams/${id}/choices/1`;
  return {
    created: joined(got, 3),
    post,
    combined: await codeOf(() => all(read(`/streams/${id}/events?stream=true`))),
    choice: await codeOf(() => all(read(`${view}?stream=true`))),
    so_far: await soFar(view),
  };
}

async function repeated() {
  const headers = { "Idempotency-Key": `node-${Date.now()}` };
  const first = await create("pause", { headers });
  const second = await create("pause", { headers });
  return {
    same_id: first.id === second.id,
    replayed: second.headers.get("idempotent-replayed"),
    texts: [await texts(first.chunks), await texts(second.chunks)],
  };
}

async function later() {
  const body = { model: "m", n: 2, messages: [{ role: "user", content: "pause" }] };
  const created = client.chat.completions.create(body, { headers: { Prefer: "respond-async" } });
  const { data, response } = await created.withResponse();
  const choices = await each(2, (index) => text(read(`/streams/${data.id}/choices/${index}?stream=true`)));
  return { status: response.status, state: data.state, choices };
}

/** Reads choice 1 by a signed link. The client reconnects by itself until it gets 204. */
async function eventSource() {
  const { id, chunks } = await create("slow", { gateway: hasty });
  const links = await hasty.post(`/streams/${id}/links`, { body: { scope: "read", expires_in: 600 } });
  const [messages, ids, cursors] = [[], [], []];
  const source = new EventSource(new URL(links.choices[1], argv[3]), {
    fetch: (url, init) => {
      cursors.push(init.headers["Last-Event-ID"] ?? null);
      return fetch(url, init);
    },
  });
  source.onmessage = (message) => {
    ids.push(Number(message.lastEventId));
    messages.push(message.data);
  };
  const code = await new Promise((resolve) => {
    source.onerror = (error) => source.readyState === EventSource.CLOSED && resolve(error.code ?? null);
  });
  const done = messages.pop();
  await all(chunks);
  return {
    code,
    done,
    text: joined(messages.map(JSON.parse), 1)[0],
    increases: ids.every((id, at) => at === 0 || id > ids[at - 1]),
    reconnected: cursors.length > 2,
    cursors_are_ids: cursors.slice(1).every((cursor) => ids.includes(Number(cursor))),
  };
}

const live = await create("words", { headers: { "X-Stream-Durability": "live" } });
const observed = {
  finished: await finished(),
  pings: await texts((await create("pause")).chunks),
  cancelled: await cancelled(),
  cut: await cut(),
  repeated: await repeated(),
  later: await later(),
  live: { id: live.id, texts: await texts(live.chunks) },
  unknown: await codeOf(() => read("/streams/AAAAAAAAAAAAAAAAAAAAAA/events?stream=true")),
  refused: await codeOf(() => create("refuse")),
  event_source: await eventSource(),
};
console.log(JSON.stringify(observed));
