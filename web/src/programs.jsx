import { useEffect, useRef, useState } from 'preact/hooks';
import { Icon } from './icons.jsx';
import { SourceArea } from './panels.jsx';
import { parse, runSteps } from './programs.js';
import { SavedStore } from './store.js';

const SAMPLE = `# Three endings of one story. The branches share the prefix up to the fork.
user Tell me a story about a fox named Ruby.
gen opening max=30 stop="."
fork 3
  text . One night,
  gen ending max=24 stop="."
user Which of these is the best?\\n{ending}
gen choice max=24`;

const kept = new SavedStore('banyan.program', { source: SAMPLE });

function Gen({ card }) {
  const facts = [];
  if (card.tokens !== undefined) facts.push(`${card.tokens} tokens`, `${card.cached} of ${card.prompt} prompt tokens cached`);
  return (
    <div class={`step gen ${card.state}`}>
      <b>{card.name}</b>
      <div class="plain">{card.text || '…'}</div>
      {card.prompt > 0 && <progress max={card.prompt} value={card.cached} aria-label="Prompt tokens from the cache" />}
      <small class="figures">{facts.join(' · ')}</small>
    </div>
  );
}

function Steps({ cards }) {
  return cards.map((card, i) => {
    if (card.kind === 'gen') return <Gen card={card} key={i} />;
    if (card.kind === 'fork') {
      return (
        <div class="fork" key={i} role="group" aria-label="Fork">
          <div class="lanes">
            {(card.lanes ?? []).map((lane) => <div class="lane" role="group" aria-label="Branch"><Steps cards={lane} /></div>)}
          </div>
        </div>
      );
    }
    return <div class="step" key={i}><b>{card.kind}</b><div class="plain">{card.text}</div></div>;
  });
}

export function Programs() {
  const { source } = kept.use();
  const [cards, setCards] = useState([]);
  const [problem, setProblem] = useState('');
  const [live, setLive] = useState(false);
  const controller = useRef(null);
  useEffect(() => () => controller.current?.abort(), []);
  const run = async (event) => {
    event.preventDefault();
    const all = [];
    let frame = 0;
    const tell = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setCards([...all]);
      });
    };
    try {
      const steps = parse(source);
      controller.current = new AbortController();
      setLive(true);
      setProblem('');
      const state = { messages: [], values: {}, seed: Math.floor(Math.random() * 1e6) };
      await runSteps(steps, state, all, tell, controller.current.signal);
    } catch (error) {
      controller.current?.abort();
      const lost = error instanceof TypeError;
      setProblem(error.name === 'AbortError' ? 'Stopped.' : lost ? 'The connection is lost. Run it again.' : error.message);
    }
    setLive(false);
    tell();
  };
  const key = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run(event);
  };
  return (
    <div class="bench">
      <form class="card" onSubmit={run} onKeyDown={key}>
        <div class="field"><span>Program</span>
          <SourceArea label="Program" rows={14} value={source} sample={SAMPLE} onInput={(text) => kept.set({ source: text })} /></div>
        <small class="quiet">Lines are system, user, text, gen NAME (max, stop, temperature, regex, choices) and fork N with
          indented lines. {'{name}'} is what gen NAME wrote, of a fork a list. It runs in this page, one request for each gen.</small>
        <div class="row"><span class="space" />
          {live ? <button type="button" class="button" onClick={() => controller.current.abort()}>Stop</button>
            : <button type="submit" class="button primary" title="Ctrl+Enter">Run</button>}</div>
        {problem && <p class="problem" role="alert">{problem}</p>}
      </form>
      <section class="card" aria-label="What it did"><h2>What it did</h2>
        {cards.length > 0 ? <div class="steps"><Steps cards={cards} /></div>
          : <div class="empty"><Icon name="tree" /><p>Run it to see its branches.</p></div>}
      </section>
    </div>
  );
}
