// Small programs over the server: lines that add text or ask for some, with forks. They run here in
// the browser, call by call; branches share their prefix in the server's tree.
import { events, request } from './api.js';

export class ProgramError extends Error {}

const OPTIONS = { max: 'max_tokens', temperature: 'temperature', stop: 'stop', regex: 'regex', choices: 'guided_choice' };

function options(text, line) {
  const found = {};
  for (const [whole, name, quoted, bare] of text.matchAll(/(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))/g)) {
    if (!OPTIONS[name]) throw new ProgramError(`Line ${line}: gen knows no ${name}; it takes ${Object.keys(OPTIONS).join(', ')}`);
    const value = quoted !== undefined ? quoted.replace(/\\n/g, '\n').replace(/\\(.)/g, '$1') : bare;
    const numeric = name === 'max' || name === 'temperature';
    if (numeric && !Number.isFinite(Number(value))) throw new ProgramError(`Line ${line}: ${name}=${value} is no number`);
    found[OPTIONS[name]] = numeric ? Number(value) : name === 'choices' ? value.split('|') : value;
    text = text.replace(whole, '');
  }
  if (text.trim()) throw new ProgramError(`Line ${line}: what is ${text.trim()}?`);
  return found;
}

function parseLine(text, line) {
  const [, word, rest] = /^(\S+)\s*(.*)$/.exec(text);
  if (word === 'user' || word === 'system' || word === 'text') return { kind: word, text: rest };
  if (word === 'gen') {
    const name = /^\w+/.exec(rest)?.[0];
    if (!name) throw new ProgramError(`Line ${line}: gen needs a name, as in: gen answer max=20`);
    return { kind: 'gen', name, options: options(rest.slice(name.length), line) };
  }
  if (word === 'fork') {
    const count = Number(rest);
    if (!(count >= 2 && count <= 8)) throw new ProgramError(`Line ${line}: fork needs a number from 2 to 8`);
    return { kind: 'fork', count, steps: [] };
  }
  throw new ProgramError(`Line ${line}: ${word} is none of system, user, text, gen, fork`);
}

/** The steps of a program; a fork's are the lines below it that are indented. */
export function parse(source) {
  const steps = [];
  let fork = null;
  source.split('\n').forEach((raw, i) => {
    if (!raw.trim() || raw.trim().startsWith('#')) return;
    const inner = /^\s/.test(raw);
    const step = parseLine(raw.trim(), i + 1);
    if (inner && !fork) throw new ProgramError(`Line ${i + 1}: only lines below a fork are indented`);
    if (inner && step.kind === 'fork') throw new ProgramError(`Line ${i + 1}: a fork in a fork is not drawn here`);
    if (!inner) fork = step.kind === 'fork' ? step : null;
    (inner ? fork.steps : steps).push(step);
  });
  if (steps.length === 0) throw new ProgramError('The program has no lines');
  return steps;
}

const fill = (text, state) =>
  text.replace(/\\n/g, '\n').replace(/\{(\w+)\}/g, (whole, name) => state.values[name] ?? whole);

function append(state, text) {
  const last = state.messages.at(-1);
  if (last?.role === 'assistant') state.messages[state.messages.length - 1] = { ...last, content: last.content + text };
  else state.messages.push({ role: 'assistant', content: text });
}

async function generate(step, state, card, tell, signal) {
  const open = state.messages.at(-1)?.role === 'assistant';
  const body = {
    messages: state.messages, max_tokens: 64, ...step.options, seed: state.seed,
    stream: true, stream_options: { include_usage: true },
    ...(open ? { continue_final_message: true } : {}),
  };
  const begun = performance.now();
  const response = await request('/v1/chat/completions', { body, signal });
  for await (const event of events(response)) {
    if (event === '[DONE]') break;
    const chunk = JSON.parse(event);
    if (chunk.error) throw new Error(chunk.error.message);
    card.text += chunk.choices?.[0]?.delta.content ?? '';
    if (chunk.usage) Object.assign(card, { prompt: chunk.usage.prompt_tokens, tokens: chunk.usage.completion_tokens,
      cached: chunk.usage.prompt_tokens_details?.cached_tokens ?? 0 });
    card.ms = performance.now() - begun;
    tell();
  }
  card.state = 'done';
  append(state, card.text);
  state.values[step.name] = card.text;
}

async function runFork(step, state, card, tell, signal) {
  const branches = Array.from({ length: step.count }, (_, i) => ({
    messages: [...state.messages], values: { ...state.values }, seed: state.seed * 31 + i + 1,
  }));
  card.lanes = branches.map(() => []);
  await Promise.all(branches.map((branch, i) => runSteps(step.steps, branch, card.lanes[i], tell, signal)));
  for (const inner of step.steps) {
    if (inner.kind !== 'gen') continue;
    state.values[inner.name] = branches.map((branch) => `- ${branch.values[inner.name].trim()}`).join('\n');
  }
  card.state = 'done';
}

/** Adds a card to `cards` for each step, and changes it while the step runs. */
export async function runSteps(steps, state, cards, tell, signal) {
  for (const step of steps) {
    const card = { kind: step.kind, name: step.name ?? '', text: '', state: 'running' };
    cards.push(card);
    tell();
    try {
      if (step.kind === 'gen') await generate(step, state, card, tell, signal);
      else if (step.kind === 'fork') await runFork(step, state, card, tell, signal);
      else {
        card.text = fill(step.text, state);
        if (step.kind === 'text') append(state, card.text);
        else state.messages.push({ role: step.kind, content: card.text });
        card.state = 'done';
      }
    } catch (error) {
      if (card.state === 'running') card.state = 'failed';
      throw error;
    } finally {
      tell();
    }
  }
}
