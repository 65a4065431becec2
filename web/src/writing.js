// Answers while they are written: the stream, stopping it, and going on after a lost connection.
//
// Every request has a seed, and the server gives the same answer for the same seed. So an answer
// whose connection is lost goes on where it was (continue_final_message) or, with a grammar, tools or
// reasoning, which have to be seen from their beginning, is asked for again and comes out the same.
import { events, getJson, request, server, whenReady } from './api.js';
import { add, parentOf, pathTo, rename, save } from './conversations.js';
import { requestFields, settings } from './settings.js';
import { Store, touch } from './store.js';

const SILENCE_MS = 20000; // after which the server is asked whether it is there
const SAVED_TOKENS = 4000; // probabilities of longer answers last as long as the page

/** count: answers that are being written. */
export const writing = new Store({ count: 0 });
const running = new Map(); // node -> AbortController

export const isWriting = (node) => running.has(node);

export function stop(node) {
  running.get(node)?.abort(new DOMException('stopped', 'AbortError'));
}

export function stopAll() {
  for (const node of running.keys()) stop(node);
}

export function userText(node) {
  const files = (node.files ?? []).map(({ name, text }) =>
    `<file name="${name}">\n${text}\n</file>`);
  return [...files, node.content].filter(Boolean).join('\n\n');
}

function message(node) {
  if (node.role === 'user') return { role: 'user', content: userText(node) };
  if (node.role === 'tool') {
    return { role: 'tool', tool_call_id: node.callId, content: node.content };
  }
  const answer = { role: 'assistant', content: node.content };
  if (node.calls?.length) {
    answer.tool_calls = node.calls.map(({ id, name, args }) =>
      ({ id, type: 'function', function: { name, arguments: args } }));
  }
  return answer;
}

function messages(conversation, node) {
  const system = conversation.system ?? settings.value.system;
  const list = system.trim() ? [{ role: 'system', content: system }] : [];
  return [...list, ...pathTo(conversation, node).map(message)];
}

/** Whether more text can be asked for after what there is. */
export const canContinue = (node) =>
  node.content && !node.calls?.length && !node.reasoning && !node.grammar;

function hide(node, name, value) {
  Object.defineProperty(node, name, { value, enumerable: false, writable: true, configurable: true });
}

function begin(node, { keep }) {
  if (keep) {
    node.kept = node.content.length;
  } else {
    Object.assign(node, { content: '', reasoning: '', calls: [], kept: 0 });
    hide(node, 'tokens', []);
  }
  if (!node.tokens) hide(node, 'tokens', keep ? [{ t: node.content, p: null, top: [] }] : []);
  node.usage = null;
}

function takeCalls(node, deltas) {
  for (const delta of deltas) {
    const call = (node.calls[delta.index] ??= { id: '', name: '', args: '' });
    call.id = delta.id ?? call.id;
    call.name += delta.function?.name ?? '';
    call.args += delta.function?.arguments ?? '';
  }
}

function takeChunk(node, chunk, clock) {
  if (chunk.error) throw Object.assign(new Error(chunk.error.message), { told: true });
  if (chunk.usage) node.usage = chunk.usage;
  const choice = chunk.choices?.[0];
  if (!choice) return;
  const { delta } = choice;
  if (delta.reasoning_content) node.reasoning += delta.reasoning_content;
  if (delta.content) node.content += delta.content;
  if (delta.tool_calls) takeCalls(node, delta.tool_calls);
  const probabilities = choice.logprobs?.content ?? [];
  for (const one of probabilities) {
    node.tokens.push({
      t: one.token, p: one.logprob, top: one.top_logprobs.map((o) => [o.token, o.logprob]),
      r: Boolean(delta.reasoning_content),
    });
  }
  if (delta.content || delta.reasoning_content || delta.tool_calls) {
    clock.first ||= performance.now();
    clock.pieces += Math.max(1, probabilities.length);
    clock.last = performance.now();
  }
  if (choice.finish_reason) node.finish = choice.finish_reason;
}

function body(conversation, node) {
  const fields = { ...node.fields };
  const list = messages(conversation, parentOf(conversation, node));
  if (node.kept > 0) {
    list.push({ role: 'assistant', content: node.content });
    Object.assign(fields, { continue_final_message: true });
    if (fields.max_tokens) fields.max_tokens = Math.max(1, fields.max_tokens - node.counted);
  }
  return { ...fields, messages: list, stream: true, stream_options: { include_usage: true } };
}

/** Aborts the attempt if the server is silent and cannot be reached any more. */
function guardSilence(attempt, clock, node) {
  return setInterval(async () => {
    const silent = performance.now() - clock.heard;
    node.silent = silent > SILENCE_MS / 4 ? silent : 0;
    if (node.silent) touch(node);
    if (silent < SILENCE_MS || clock.asking) return;
    clock.asking = true;
    try {
      await getJson('/health');
    } catch (error) {
      if (!error.status) attempt.abort(new TypeError('the connection is lost'));
    }
    clock.asking = false;
  }, 1000);
}

async function attempt(conversation, node, signal) {
  const own = new AbortController();
  const forward = () => own.abort(signal.reason);
  signal.addEventListener('abort', forward, { once: true });
  const clock = { begun: performance.now(), heard: performance.now(), first: 0, last: 0, pieces: 0 };
  hide(node, 'clock', clock);
  node.finish = null;
  const guard = guardSilence(own, clock, node);
  try {
    const response = await request('/v1/chat/completions',
      { body: body(conversation, node), signal: own.signal });
    node.state = 'writing';
    const heard = () => {
      clock.heard = performance.now();
      node.silent = 0;
    };
    for await (const event of events(response, heard)) {
      if (event === '[DONE]') break;
      takeChunk(node, JSON.parse(event), clock);
      touch(node);
      save(conversation);
    }
    if (!node.finish && !signal.aborted) throw new TypeError('the stream broke off');
  } catch (error) {
    throw own.signal.aborted ? own.signal.reason : error;
  } finally {
    clearInterval(guard);
    signal.removeEventListener('abort', forward);
    node.silent = 0;
    node.counted += clock.pieces;
    node.time = {
      first: (node.time?.first || (clock.first && clock.first - clock.begun)) || 0,
      writing: (node.time?.writing ?? 0) + Math.max(0, clock.last - clock.first),
      pieces: (node.time?.pieces ?? 0) + Math.max(0, clock.pieces - 1),
    };
  }
}

async function patient(conversation, node, signal) {
  for (;;) {
    try {
      return await attempt(conversation, node, signal);
    } catch (error) {
      const lost = error instanceof TypeError || error.status === 503 || error.status === 502;
      if (signal.aborted || error.told || !lost) throw error;
      node.state = 'waiting';
      node.problem = error.status ? error.message : 'Connection lost';
      touch(node);
      await whenReady(signal);
      begin(node, { keep: Boolean(canContinue(node)) });
      touch(node);
    }
  }
}

/** The last token of a finished answer is no part of its text. */
export function markEnd(node) {
  const last = node.tokens.at(-1);
  if (node.finish === 'stop' && last && !node.content.endsWith(last.t)) last.end = true;
}

function settle(conversation, node, error) {
  const stopped = error?.name === 'AbortError';
  node.state = !error ? 'done' : stopped ? 'stopped' : 'failed';
  node.problem = error && !stopped ? error.message : '';
  if (error?.status === 401) server.set({ status: 'locked' });
  markEnd(node);
  if (node.tokens.length <= SAVED_TOKENS) node.savedTokens = node.tokens;
  touch(node);
  touch(conversation);
  save(conversation);
}

async function write(conversation, node, { keep = false } = {}) {
  if (running.has(node)) return;
  const controller = new AbortController();
  running.set(node, controller);
  writing.set({ count: running.size });
  begin(node, { keep });
  node.state = 'waiting';
  node.problem = '';
  touch(node);
  try {
    await patient(conversation, node, controller.signal);
    settle(conversation, node, null);
  } catch (error) {
    settle(conversation, node, error);
  } finally {
    running.delete(node);
    writing.set({ count: running.size });
  }
}

// ---- What people do ---------------------------------------------------------------------------

function answer(conversation, parent, more = {}) {
  const fields = requestFields();
  const node = add(conversation, parent, {
    role: 'assistant', content: '', reasoning: '', calls: [], state: 'waiting', fields, kept: 0,
    counted: 0, grammar: settings.value.grammar !== 'none' && !!(fields.regex || fields.ebnf ||
      fields.response_format), model: server.value.model, ...more,
  });
  write(conversation, node, { keep: Boolean(more.content) });
  return node;
}

/** Adds a user's message after `parent` and asks for an answer. Throws SettingError. */
export function send(conversation, parent, content, files = []) {
  requestFields();
  const node = add(conversation, parent, { role: 'user', content, files });
  if (conversation.title === 'New chat') rename(conversation, content || files[0]?.name || '');
  answer(conversation, node);
}

/** The results of a message's calls, in their order, and an answer to them. */
export function sendResults(conversation, node, results) {
  requestFields();
  let last = node;
  node.calls.forEach((call, i) => {
    last = add(conversation, last,
      { role: 'tool', callId: call.id, name: call.name, content: results[i] });
  });
  answer(conversation, last);
}

export const again = (conversation, node) => answer(conversation, parentOf(conversation, node));

/** The same node once more: after a failure, or on from where it stopped. */
export function resume(conversation, node) {
  write(conversation, node, { keep: Boolean(canContinue(node)) });
}

/** Another branch that is the same up to a token and goes on from `text` in its place. */
export function branchAt(conversation, node, index, text) {
  const tokens = node.tokens.slice(0, index).concat({ t: text, p: null, top: [] });
  const content = tokens.filter((one) => !one.r && !one.end).map((one) => one.t).join('');
  const made = answer(conversation, parentOf(conversation, node), { content });
  hide(made, 'tokens', tokens);
}

/** The tokens of a message with their probabilities, null if they are not known. */
export function tokensOf(node) {
  if (!node.tokens && node.savedTokens) hide(node, 'tokens', node.savedTokens);
  return node.tokens?.length ? node.tokens : null;
}

/** Tokens a second while it is written, or on the whole. */
export function rate(node) {
  const clock = node.clock;
  if (running.has(node) && clock?.pieces > 1) {
    return ((clock.pieces - 1) * 1000) / Math.max(1, clock.last - clock.first);
  }
  return node.time?.writing > 0 ? (node.time.pieces * 1000) / node.time.writing : 0;
}
