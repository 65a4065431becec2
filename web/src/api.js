// The server: whether it is there, what it says, and streams of events.
import { SavedStore, Store } from './store.js';

export const access = new SavedStore('banyan.access', { key: '' });

/**
 * status: 'unknown' | 'ready' | 'loading' | 'lost' | 'locked' (an API key is needed)
 * retryAt: when the next attempt is made, in ms; speed: tokens/s of the whole server; limit: what
 * the machine could reach with as many requests as run now, 0 while it is not known
 */
export const server = new Store(
  { status: 'unknown', info: null, model: '', retryAt: 0, speed: 0, limit: 0 });

export class ServerError extends Error {
  constructor(status, message, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

function headers(more) {
  const all = { ...more };
  if (access.value.key) all.Authorization = `Bearer ${access.value.key}`;
  return all;
}

async function failure(response) {
  const text = await response.text().catch(() => '');
  let message = text.slice(0, 500);
  try {
    const body = JSON.parse(text);
    message = body.error?.message ?? body.message ?? message;
  } catch {
    // Not JSON: a proxy's page, perhaps. Its beginning has to do.
  }
  const retryAfter = Number(response.headers.get('retry-after')) || 0;
  return new ServerError(response.status, message || `status ${response.status}`, retryAfter);
}

/** Throws ServerError for an answer that is none, TypeError where there is no connection. */
export async function request(path, { body, signal } = {}) {
  const response = await fetch(path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: headers(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
    cache: 'no-store',
  });
  if (!response.ok) throw await failure(response);
  return response;
}

export const getJson = async (path) => (await request(path)).json();

/** How much of the machine's limit a speed is, in words; '' while that is not known. */
export const shareOf = (speed, limit) =>
  limit > 0 && speed >= 1 ? `${Math.round((100 * speed) / limit)}% of the limit` : '';

/** The events of a stream; `alive` is called for every piece that comes. */
export async function* events(response, alive = () => {}) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      alive();
      rest += value;
      let end;
      let begin = 0;
      while ((end = rest.indexOf('\n\n', begin)) >= 0) {
        const event = rest.slice(begin, end);
        begin = end + 2;
        const data = event.split('\n').find((line) => line.startsWith('data: '));
        if (data) yield data.slice(6);
      }
      rest = rest.slice(begin);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// ---- Whether it is there ----------------------------------------------------------------------

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 10000;
const POLL_MS = 2000;
let wait = FIRST_WAIT_MS;
let timer = 0;
let last = null; // {time, tokens} of the poll before
let waiters = [];

function settle(status, change = {}) {
  server.set({ status, ...change });
  if (status !== 'ready') return;
  wait = FIRST_WAIT_MS;
  for (const waiter of waiters.splice(0)) waiter();
}

function speed(info) {
  const tokens = info.internal_states[0].generated_tokens;
  const now = performance.now();
  const before = last;
  last = { time: now, tokens };
  if (!before || tokens < before.tokens) return 0;
  return ((tokens - before.tokens) * 1000) / Math.max(1, now - before.time);
}

const limits = new Map(); // by the number of requests that run

/** The server measures the machine when it is idle, so nothing is asked of a busy one before that. */
async function readLimit(state) {
  const sequences = Math.max(1, state.num_running_reqs);
  const idle = state.num_running_reqs + state.num_queue_reqs === 0;
  if (!limits.has(sequences) && (idle || limits.size > 0)) {
    const limit = await getJson(`/decode_limit?sequences=${sequences}`).catch(() => null);
    if (limit) limits.set(sequences, limit.tokens_per_s_limit);
  }
  server.set({ limit: limits.get(sequences) ?? 0 });
}

async function poll() {
  clearTimeout(timer);
  let next = document.hidden ? 5 * POLL_MS : POLL_MS;
  try {
    const response = await request('/server_info', { signal: AbortSignal.timeout(15000) });
    const info = await response.json();
    settle('ready', { info, model: info.served_model_name, speed: speed(info) });
    readLimit(info.internal_states[0]);
  } catch (error) {
    last = null;
    next = problem(error);
  }
  timer = setTimeout(poll, next);
}

function problem(error) {
  if (error.status === 401) {
    settle('locked');
    return LONGEST_WAIT_MS;
  }
  if (error.status === 503) {
    settle('loading', { detail: error.message });
    return FIRST_WAIT_MS;
  }
  // A slow server is not a lost one: it took the connection.
  if (error.name === 'TimeoutError') return FIRST_WAIT_MS;
  limits.clear(); // another model may come back
  const delay = wait;
  wait = Math.min(LONGEST_WAIT_MS, wait * 2);
  settle('lost', { retryAt: Date.now() + delay });
  return delay;
}

export function pollNow() {
  wait = FIRST_WAIT_MS;
  return poll();
}

/** Resolves once requests are welcome. */
export function whenReady(signal) {
  return new Promise((resolve, reject) => {
    waiters.push(resolve);
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    clearTimeout(timer);
    timer = setTimeout(poll, server.value.status === 'ready' ? 300 : wait);
    if (server.value.status === 'ready') settle('lost', { retryAt: Date.now() + 300 });
  });
}

export function setKey(key) {
  access.set({ key: key.trim() });
  pollNow();
}

addEventListener('online', pollNow);
addEventListener('visibilitychange', () => document.hidden || pollNow());
