// A place to try grammars: what one lets through, how fast, and with what probabilities.
import { useEffect, useRef, useState } from 'preact/hooks';
import { events, request } from './api.js';
import { Icon } from './icons.jsx';
import { Choice, GRAMMARS, SourceArea } from './panels.jsx';
import { Programs } from './programs.jsx';
import { grammarFields } from './settings.js';
import { SavedStore } from './store.js';
import { Popover, Tokens } from './tokens.jsx';
import { markEnd } from './writing.js';

const tried = new SavedStore('banyan.playground', {
  kind: 'json_schema', prompt: 'Extract name, age as JSON: Mia Stone is 34 years old and lives in Oslo.',
  json_schema: GRAMMARS.json_schema.sample, regex: GRAMMARS.regex.sample, ebnf: GRAMMARS.ebnf.sample,
  temperature: '0.7', max_tokens: '200',
});

const KINDS = [...Object.entries(GRAMMARS).map(([key, { label }]) => [key, label]), ['program', 'Program']];

function requestBody(all) {
  return {
    messages: [{ role: 'user', content: all.prompt }],
    ...grammarFields(all.kind, all[all.kind]),
    temperature: Number(all.temperature), max_tokens: Number(all.max_tokens),
    logprobs: true, top_logprobs: 5, stream: true, stream_options: { include_usage: true },
  };
}

/** {state, text, tokens, finish, usage, first, speed, warnings, problem} of one try. */
function useTry() {
  const [shown, setShown] = useState(null);
  const controller = useRef(null);
  useEffect(() => () => controller.current?.abort(), []);
  const run = async (body) => {
    controller.current?.abort();
    const { signal } = (controller.current = new AbortController());
    const result = { state: 'waiting', text: '', tokens: [], begun: performance.now() };
    let frame = 0;
    const draw = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setShown({ ...result });
      });
    };
    draw();
    try {
      const response = await request('/v1/chat/completions', { body, signal });
      for await (const event of events(response)) {
        if (event === '[DONE]') break;
        take(result, JSON.parse(event));
        draw();
      }
      markEnd({ tokens: result.tokens, finish: result.finish, content: result.text });
      result.state = 'done';
    } catch (error) {
      result.state = signal.aborted ? 'stopped' : 'failed';
      result.problem = error instanceof TypeError ? 'The connection is lost. Try again.' : error.message;
    }
    draw();
  };
  return { shown, run, stop: () => controller.current?.abort() };
}

function take(result, chunk) {
  if (chunk.error) throw new Error(chunk.error.message);
  result.usage = chunk.usage ?? result.usage;
  result.warnings = chunk.warnings ?? result.warnings;
  const choice = chunk.choices?.[0];
  if (!choice) return;
  for (const one of choice.logprobs?.content ?? []) {
    result.tokens.push({ t: one.token, p: one.logprob, top: one.top_logprobs.map((o) => [o.token, o.logprob]) });
  }
  result.text += choice.delta.content ?? '';
  result.state = 'writing';
  result.first ??= performance.now() - result.begun;
  result.total = performance.now() - result.begun;
  result.finish = choice.finish_reason ?? result.finish;
}

function verdict({ state, finish, text, problem }, kind) {
  if (problem) return ['problem', problem];
  if (state === 'stopped') return ['quiet', 'Stopped before its end.'];
  if (state !== 'done') return ['quiet', state === 'waiting' ? 'Compiling the grammar and reading the prompt…' : 'Writing…'];
  if (finish === 'length') return ['warning', 'Cut off by max tokens: the beginning of a valid text.'];
  if (kind === 'json_schema') {
    try {
      JSON.parse(text);
    } catch {
      return ['warning', 'Ended, but is no JSON.'];
    }
  }
  return ['good', 'Complete: a text of the grammar.'];
}

function Result({ shown, kind }) {
  if (!shown) return <div class="empty"><Icon name="lab" /><p>Run it to see what comes out.</p></div>;
  const [mood, words] = verdict(shown, kind);
  const facts = [];
  if (shown.first) facts.push(`first token after ${Math.round(shown.first)} ms`);
  if (shown.usage) facts.push(`${shown.usage.completion_tokens} tokens in ${(shown.total / 1000).toFixed(2)} s`);
  return (
    <>
      <p class={`verdict ${mood}`} role="status">{words}</p>
      {(shown.warnings ?? []).map((warning) => <p class="verdict warning">{warning}</p>)}
      {shown.tokens.length > 0 && <Tokens conversation={null} tokens={shown.tokens}
        node={{ tokens: shown.tokens, grammar: true, role: 'assistant' }} />}
      <p class="figures">{facts.join(' · ')}</p>
    </>
  );
}

function Grammars({ all }) {
  const { shown, run, stop } = useTry();
  const [problem, setProblem] = useState('');
  const live = shown && (shown.state === 'waiting' || shown.state === 'writing');
  const submit = (event) => {
    event.preventDefault();
    try {
      setProblem('');
      run(requestBody(all));
    } catch (error) {
      setProblem(error.message);
    }
  };
  const field = (name) => (event) => tried.set({ [name]: event.target.value });
  const key = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event);
  };
  return (
    <div class="bench">
      <form class="card" onSubmit={submit} onKeyDown={key}>
        <label class="field"><span>Prompt</span>
          <textarea rows={3} value={all.prompt} onInput={field('prompt')} /></label>
        <div class="field"><span>{GRAMMARS[all.kind].label}</span>
          <SourceArea label={GRAMMARS[all.kind].label} rows={12} value={all[all.kind]}
            sample={GRAMMARS[all.kind].sample} onInput={(text) => tried.set({ [all.kind]: text })} /></div>
        <div class="row">
          <label class="field small"><span>Temperature</span>
            <input inputMode="decimal" value={all.temperature} onInput={field('temperature')} /></label>
          <label class="field small"><span>Max tokens</span>
            <input inputMode="numeric" value={all.max_tokens} onInput={field('max_tokens')} /></label>
          <span class="space" />
          {live ? <button type="button" class="button" onClick={stop}>Stop</button>
            : <button type="submit" class="button primary" title="Ctrl+Enter">Run</button>}
        </div>
        {problem && <p class="problem" role="alert">{problem}</p>}
      </form>
      <section class="card" aria-label="Output"><h2>Output</h2><Result shown={shown} kind={all.kind} /></section>
      <Popover />
    </div>
  );
}

export function Playground() {
  const all = tried.use();
  return (
    <main class="page">
      <div class="page-head"><h1>Playground</h1>
        <Choice label="What to try" value={all.kind} options={KINDS} onChange={(kind) => tried.set({ kind })} />
      </div>
      {all.kind === 'program' ? <Programs /> : <Grammars key={all.kind} all={all} />}
    </main>
  );
}
