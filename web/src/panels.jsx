// The panel of settings: system prompt, sampling, grammar, tools, access.
import { useState } from 'preact/hooks';
import { access, setKey } from './api.js';
import { chats, save } from './conversations.js';
import { Button, Icon } from './icons.jsx';
import { NUMBERS, applyTheme, settings } from './settings.js';
import { touch, useObject } from './store.js';

const Section = ({ title, open, children }) => (
  <details class="section" open={open}>
    <summary><Icon name="right" />{title}</summary>
    <div class="section-body">{children}</div>
  </details>
);

function NumberField({ field }) {
  const all = settings.use();
  const { name, label, help, min, max, step, plain } = field;
  const value = all[name];
  const set = (event) => settings.set({ [name]: event.target.value });
  const wrong = String(value) !== '' && !(Number(value) >= min && Number(value) <= max);
  return (
    <div class="number" title={help}>
      <label for={`n-${name}`}>{label}</label>
      <input id={`n-${name}`} inputMode="decimal" value={value} placeholder="default" onInput={set}
        aria-invalid={wrong} aria-describedby={`h-${name}`} />
      {!plain && (
        <input type="range" min={min} max={max} step={step} aria-label={`${label}, slider`}
          value={value === '' ? (min + max) / 2 : value} class={value === '' ? 'unset' : ''} onInput={set} />
      )}
      <small id={`h-${name}`} class={wrong ? 'problem' : 'unseen'}>{wrong ? `From ${min} to ${max}` : help}</small>
    </div>
  );
}

export function Choice({ label, value, options, onChange }) {
  return (
    <div class="choice-row" role="radiogroup" aria-label={label}>
      {options.map(([key, text]) => (
        <label class={key === value ? 'on' : ''}>
          <input type="radio" name={label} checked={key === value} onChange={() => onChange(key)} />{text}
        </label>
      ))}
    </div>
  );
}

export const GRAMMARS = {
  json_schema: { field: 'schema', label: 'JSON schema', sample:
    '{\n  "type": "object",\n  "properties": {\n    "name": {"type": "string"},\n    "age": {"type": "integer"}\n  },\n  "required": ["name", "age"]\n}' },
  regex: { field: 'regex', label: 'Regex', sample: '(yes|no), because [a-z ]{5,60}\\.' },
  ebnf: { field: 'ebnf', label: 'EBNF', sample:
    'root ::= line line line\nline ::= "- " [a-z]+ (" " [a-z]+)* "\\n"' },
};

const KINDS = [['none', 'None'], ...Object.entries(GRAMMARS).map(([key, { label }]) => [key, label])];

export function SourceArea({ label, value, onInput, rows = 8, sample }) {
  const key = (event) => {
    if (event.key !== 'Tab' || event.shiftKey || !event.altKey) return;
    event.preventDefault();
    event.target.setRangeText('  ', event.target.selectionStart, event.target.selectionEnd, 'end');
    onInput(event.target.value);
  };
  return (
    <div class="source">
      <textarea rows={rows} value={value} aria-label={label} spellcheck={false} onKeyDown={key}
        onInput={(event) => onInput(event.target.value)} />
      {sample && !value.trim() && <Button text="Insert an example" label={`Insert an example: ${label}`}
        onClick={() => onInput(sample)} />}
    </div>
  );
}

function Grammar() {
  const all = settings.use();
  const chosen = GRAMMARS[all.grammar];
  return (
    <Section title="Grammar" open={all.grammar !== 'none'}>
      <Choice label="Grammar of the answer" value={all.grammar} options={KINDS}
        onChange={(grammar) => settings.set({ grammar })} />
      {chosen && <SourceArea label={chosen.label} value={all[chosen.field]} sample={chosen.sample}
        onInput={(text) => settings.set({ [chosen.field]: text })} />}
      <small class="quiet">{chosen ? 'Every answer follows it from its first token.' : 'The answer is free text.'}</small>
    </Section>
  );
}

const TOOLS = '[{\n  "type": "function",\n  "function": {\n    "name": "set_timer",\n    "description": "Sets a timer",\n' +
  '    "parameters": {\n      "type": "object",\n      "properties": {"minutes": {"type": "integer"}},\n      "required": ["minutes"]\n    }\n  }\n}]';

function Tools() {
  const all = settings.use();
  return (
    <Section title="Tools" open={Boolean(all.tools.trim())}>
      <SourceArea label="Tools, as JSON" value={all.tools} sample={TOOLS}
        onInput={(tools) => settings.set({ tools })} />
      <Choice label="Use of tools" value={all.toolChoice} onChange={(toolChoice) => settings.set({ toolChoice })}
        options={[['auto', 'Auto'], ['required', 'Required'], ['none', 'None']]} />
      <small class="quiet">A call is shown with a field for its result; nothing is run here.</small>
    </Section>
  );
}

function System() {
  const { current } = chats.use();
  useObject(current);
  const all = settings.use();
  const own = current.system !== null;
  const change = (event) => {
    current.system = event.target.value;
    touch(current);
    save(current);
  };
  return (
    <Section title="System prompt" open>
      <textarea rows={4} aria-label="System prompt" value={own ? current.system : all.system}
        placeholder="What the model should be and do" onInput={change} />
      <div class="row">
        <small class="quiet">{own ? 'Of this chat' : 'Of every new chat'}</small>
        <span class="space" />
        {own && current.system !== all.system && (
          <Button text="Use for new chats" label="Use for new chats: this system prompt"
            onClick={() => settings.set({ system: current.system })} />
        )}
      </div>
    </Section>
  );
}

function Access() {
  const { key } = access.use();
  const [text, setText] = useState(key);
  const submit = (event) => {
    event.preventDefault();
    setKey(text);
  };
  return (
    <Section title="Access" open={Boolean(key)}>
      <form onSubmit={submit}>
        <label class="field"><span>API key</span>
          <input type="password" autocomplete="off" value={text} placeholder="none"
            onInput={(event) => setText(event.target.value)} onBlur={submit} />
        </label>
      </form>
      <small class="quiet">Kept in this browser, sent to this server alone.</small>
    </Section>
  );
}

const setTheme = (theme) => {
  settings.set({ theme });
  applyTheme(theme);
};

export function Settings({ close }) {
  const all = settings.use();
  return (
    <aside class="panel" aria-label="Settings">
      <div class="panel-head"><h2>Settings</h2><Button icon="close" label="Close settings" onClick={close} /></div>
      <div class="panel-body">
        <System />
        <Section title="Sampling" open>
          {NUMBERS.map((field) => <NumberField field={field} key={field.name} />)}
          <Button text="All to the server’s defaults" label="All to the server’s defaults, of sampling"
            onClick={() => settings.set(Object.fromEntries(NUMBERS.map(({ name }) => [name, ''])))} />
        </Section>
        <Grammar />
        <Tools />
        <Section title="Reasoning and probabilities">
          <Choice label="Reasoning" value={all.thinking} onChange={(thinking) => settings.set({ thinking })}
            options={[['auto', 'Template’s way'], ['on', 'On'], ['off', 'Off']]} />
          <label class="check"><input type="checkbox" checked={all.probabilities}
            onChange={(event) => settings.set({ probabilities: event.target.checked })} />
          Ask for the probabilities of tokens</label>
        </Section>
        <Access />
        <Section title="Appearance">
          <Choice label="Theme" value={all.theme} onChange={setTheme}
            options={[['auto', 'System'], ['light', 'Light'], ['dark', 'Dark']]} />
        </Section>
      </div>
    </aside>
  );
}
