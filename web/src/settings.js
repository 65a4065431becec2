// What requests ask for, kept in localStorage. An empty field is left to the server.
import { SavedStore } from './store.js';

export const settings = new SavedStore('banyan.settings', {
  theme: 'auto',
  temperature: '', top_p: '', top_k: '', min_p: '', repetition_penalty: '',
  max_tokens: '', seed: '',
  system: '',
  grammar: 'none', schema: '', regex: '', ebnf: '',
  tools: '', toolChoice: 'auto',
  thinking: 'auto',
  probabilities: true,
});

export const NUMBERS = [
  { name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.05,
    help: 'How much chance there is; 0 takes the likeliest token' },
  { name: 'top_p', label: 'Top p', min: 0.01, max: 1, step: 0.01,
    help: 'Keeps the likeliest tokens up to this probability' },
  { name: 'top_k', label: 'Top k', min: -1, max: 200, step: 1,
    help: 'Keeps this many of the likeliest tokens; -1 keeps all' },
  { name: 'min_p', label: 'Min p', min: 0, max: 1, step: 0.01,
    help: 'Drops tokens below this part of the likeliest one’s probability' },
  { name: 'repetition_penalty', label: 'Repetition penalty', min: 0.5, max: 2, step: 0.01,
    help: 'Above 1 makes tokens that came before less likely' },
  { name: 'max_tokens', label: 'Max tokens', min: 1, max: 8192, step: 1,
    help: 'The answer ends after this many' },
  { name: 'seed', label: 'Seed', min: 0, max: 4294967295, step: 1, plain: true,
    help: 'The same seed gives the same answer; empty draws a new one each time' },
];

export class SettingError extends Error {}

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SettingError(`The ${what} is not valid JSON: ${error.message}`);
  }
}

export function grammarFields(kind, source) {
  if (kind === 'none' || !source.trim()) return {};
  if (kind === 'regex') return { regex: source };
  if (kind === 'ebnf') return { ebnf: source };
  const schema = parsed(source, 'JSON schema');
  return { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } };
}

const GRAMMAR_SOURCES = { json_schema: 'schema', regex: 'regex', ebnf: 'ebnf' };

/** The fields of a chat's request, but for its messages. Throws SettingError. */
export function requestFields() {
  const all = settings.value;
  const fields = {};
  for (const { name } of NUMBERS) {
    if (String(all[name]).trim() !== '') fields[name] = Number(all[name]);
  }
  fields.seed ??= Math.floor(Math.random() * 2 ** 31);
  if (all.probabilities) Object.assign(fields, { logprobs: true, top_logprobs: 5 });
  Object.assign(fields, grammarFields(all.grammar, all[GRAMMAR_SOURCES[all.grammar]] ?? ''));
  if (all.tools.trim()) {
    fields.tools = parsed(all.tools, 'list of tools');
    if (!Array.isArray(fields.tools)) fields.tools = [fields.tools];
    fields.tool_choice = all.toolChoice;
  }
  if (all.thinking !== 'auto') {
    fields.chat_template_kwargs = { enable_thinking: all.thinking === 'on' };
  }
  return fields;
}

export function applyTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
