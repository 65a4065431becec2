// The radix tree as it lives, and which experts are busy.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { getJson, request, server } from './api.js';
import { Button, Icon } from './icons.jsx';
import { count } from './numbers.js';

const POLL_MS = 1000;
const SHARE = 10; // times as long as an answer took, before the next question
const BRANCHES = 4096; // the most that the server tells
const AROUND = 8; // rows that are drawn above and below those in sight
const ROW = 38;
const WIDTH_MIN = 84;
const WIDTH_MAX = 460;
const LABEL = 420;
const PX_PER_TOKEN = 0.55;

/** Asks again and again while it is looked at; the last answer stays when one fails. */
function usePolled(load) {
  const [value, setValue] = useState(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let timer = 0;
    let over = false;
    const ask = async () => {
      const begun = performance.now();
      try {
        const loaded = document.hidden ? null : await load();
        if (over) return;
        if (loaded !== null) setValue(loaded);
        setProblem('');
      } catch (error) {
        if (over) return;
        setProblem(error.message);
      }
      timer = setTimeout(ask, Math.max(POLL_MS, SHARE * (performance.now() - begun)));
    };
    ask();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, []);
  return { value, problem };
}

/** Places of branches: a first child goes on in its parent's row, others get rows below. */
function layout(branches) {
  const children = new Map();
  for (const branch of branches) {
    const key = branch.parent === null ? `root ${branch.namespace}` : branch.parent;
    if (!children.has(key)) children.set(key, []);
    children.get(key).push(branch);
  }
  const placed = [];
  const trunks = new Map(); // where children fork off: from their parent's row to the last one's
  let rows = 0;
  let width = 0;
  const fork = (x, from, to) => {
    if (to > from) trunks.set(`${x} ${from}`, { x, from, to });
  };
  const place = (branch, x, row, from) => {
    const below = (children.get(branch.id) ?? []).sort((a, b) => b.end - a.end || a.id - b.id);
    const length = (branch.end - branch.begin) * PX_PER_TOKEN;
    const end = x + Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, length));
    // Nothing stands to the right of a leaf, so its text may go on there.
    const room = below.length > 0 ? end : Math.max(end, x + LABEL);
    placed.push({ branch, x, end, room, row, from });
    width = Math.max(width, room);
    below.forEach((child, i) => {
      const at = i === 0 ? row : rows++;
      fork(end, row, at);
      place(child, end, at, end);
    });
  };
  for (const [key, tops] of children) {
    if (typeof key !== 'string') continue;
    const first = rows;
    for (const top of tops.sort((a, b) => b.end - a.end || a.id - b.id)) {
      const row = rows++;
      fork(6, first, row);
      place(top, 18, row, 6);
    }
  }
  placed.sort((a, b) => a.row - b.row || a.x - b.x);
  return { placed, rows, width, trunks: [...trunks.values()] };
}

const clip = (text, width) => {
  const room = Math.floor((width - 14) / 6.4);
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > room ? `${line.slice(0, Math.max(1, room - 1))}…` : line;
};

const middle = (row) => row * ROW + 26;

/** Which of so many rows are in sight of the element that scrolls them, and some more. */
function useRows(rows) {
  const box = useRef(null);
  const [sight, setSight] = useState({ first: 0, last: 40 });
  const look = () => {
    if (!box.current) return;
    const { scrollTop, clientHeight } = box.current;
    const first = Math.floor(scrollTop / ROW);
    const last = Math.ceil((scrollTop + clientHeight) / ROW);
    setSight((now) => now.first === first && now.last === last ? now : { first, last });
  };
  useEffect(() => {
    if (!box.current) return undefined;
    const seen = new ResizeObserver(look);
    seen.observe(box.current);
    return () => seen.disconnect();
  }, [rows > 0]);
  useEffect(look, [rows]);
  return { box, look, first: sight.first - AROUND, last: sight.last + AROUND };
}

function BranchMark({ place, last, selected, select }) {
  const { branch, x, end, room, row, from } = place;
  const y = middle(row);
  const age = Math.max(0, last - branch.last_use);
  const fresh = Math.max(0.3, 1 - age / 20);
  const at = (position) => x + 4 + ((position - branch.begin) / (branch.end - branch.begin)) * (end - x - 8);
  const ticks = branch.pages <= 40 ? Array.from({ length: branch.pages - 1 }, (_, i) =>
    x + 4 + ((i + 1) / branch.pages) * (end - x - 8)) : [];
  const text = clip(branch.text ?? `${branch.end - branch.begin} tokens`, room - x);
  const label = `${text}: tokens ${branch.begin} to ${branch.end}, ${branch.pages} pages, ${branch.hits} hits` +
    `${branch.sequences ? `, ${branch.sequences} running` : ''}`;
  const key = (event) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      select(branch.id);
    }
  };
  return (
    <g class={`branch ${branch.sequences ? 'busy' : ''} ${selected ? 'selected' : ''}`} role="button"
      tabindex="0" aria-label={label} aria-pressed={selected} onClick={() => select(branch.id)} onKeyDown={key}>
      <rect class="target" x={x} y={y - 22} width={room - x} height={ROW - 4} rx="6" />
      <path class="link" d={`M${from} ${y}H${x + 2}`} />
      <rect class="bar" x={x + 2} y={y - 4} width={end - x - 4} height="8" rx="4" opacity={branch.sequences ? 1 : fresh} />
      {ticks.map((tick) => <path class="tick" d={`M${tick} ${y - 4}v8`} />)}
      {branch.snapshots.slice(-60).map((position) => <circle class="snapshot" cx={at(position)} cy={y} r="3" />)}
      <text x={x + 5} y={y - 9}>{text}</text>
    </g>
  );
}

function Detail({ branch }) {
  if (!branch) return <p class="quiet">Choose a branch to see what it holds.</p>;
  const facts = [
    ['Tokens', `${branch.begin} to ${branch.end}`],
    ['Pages', branch.pages],
    ['Snapshots', branch.snapshots.length ? `${branch.snapshots.length}, the last at ${branch.snapshots.at(-1)}` : 'none'],
    ['Resumed', `${branch.hits} times`],
    ['Running', branch.sequences || 'none'],
  ];
  return (
    <div class="detail">
      <dl>{facts.map(([name, value]) => <div><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      {branch.text !== null && <pre tabIndex={0}>{branch.text}…</pre>}
    </div>
  );
}

function Tree({ tree }) {
  const [chosen, select] = useState(null);
  const { placed, rows, width, trunks } = useMemo(() => layout(tree.branches), [tree]);
  const { box, look, first, last } = useRows(rows);
  if (placed.length === 0) {
    return <div class="empty"><Icon name="tree" /><p>Nothing is cached yet. Send a message, and its prefix takes root here.</p></div>;
  }
  return (
    <>
      <div class="tree" tabIndex={0} ref={box} onScroll={look} role="region"
        aria-label={`Radix tree, ${placed.length} branches`}>
        <svg width={width + 24} height={rows * ROW + 16} role="group" aria-label="Branches">
          {trunks.filter(({ from, to }) => from <= last && to >= first).map(({ x, from, to }) => (
            <path class="trunk" key={`${x} ${from}`} d={`M${x} ${middle(from)}V${middle(to)}`} />
          ))}
          {placed.filter(({ row }) => row >= first && row <= last).map((place) => (
            <BranchMark key={place.branch.id} place={place} last={tree.last_use}
              selected={place.branch.id === chosen} select={select} />
          ))}
        </svg>
      </div>
      {!tree.complete && <p class="quiet">Only the first {tree.branches.length} branches are drawn.</p>}
      <Detail branch={tree.branches.find(({ id }) => id === chosen)} />
    </>
  );
}

function Tile({ name, value, part, note }) {
  return (
    <div class="tile">
      <span>{name}</span>
      <b>{value}</b>
      {part !== undefined && <progress max="1" value={part} aria-label={`${name}: ${note}`} />}
      <small>{note}</small>
    </div>
  );
}

function Tiles({ tree }) {
  const { info, speed, limit } = server.use();
  const state = info?.internal_states[0];
  if (!state || !tree) return <div class="tiles" />;
  const pages = tree.pages_total - tree.pages_free;
  const running = pages - tree.pages_cached;
  const prompt = state.prompt_tokens + state.cached_tokens;
  return (
    <div class="tiles">
      <Tile name="Pages" value={count(pages)} part={pages / tree.pages_total}
        note={`of ${count(tree.pages_total)}, ${running} in use`} />
      {tree.slots_total > 0 && <Tile name="Snapshots" value={count(tree.snapshots_cached)}
        note={`room for ${count(tree.slots_total)} states`} />}
      <Tile name="Prompt tokens reused" value={prompt ? `${Math.round((100 * state.cached_tokens) / prompt)}%` : '–'}
        part={prompt ? state.cached_tokens / prompt : 0} note={`${count(state.cached_tokens)} of ${count(prompt)}`} />
      <Tile name="Tokens a second" value={speed ? Math.round(speed) : 0}
        part={limit ? Math.min(1, speed / limit) : undefined}
        note={limit ? `of ${count(limit)} that the machine allows` : `${count(state.generated_tokens)} written so far`} />
      <Tile name="Requests" value={state.num_running_reqs} note={`${state.num_queue_reqs} waiting`} />
    </div>
  );
}

// ---- Experts ----------------------------------------------------------------------------------

async function loadExperts() {
  const text = await (await request('/metrics')).text();
  const layers = new Map();
  const line = /^banyan:expert_tokens_total\{([^}]*)\} (\S+)$/gm;
  for (const [, labels, value] of text.matchAll(line)) {
    const layer = /layer="([^"]*)"/.exec(labels)[1];
    const expert = /expert="(\d+)"/.exec(labels)?.[1];
    if (expert === undefined) continue;
    if (!layers.has(layer)) layers.set(layer, []);
    layers.get(layer)[Number(expert)] = Number(value);
  }
  return [...layers].map(([layer, experts]) => ({ layer, experts }));
}

const CELL = 16;

function ExpertMap({ layers }) {
  const canvas = useRef(null);
  const [hover, setHover] = useState('');
  const columns = Math.max(...layers.map(({ experts }) => experts.length));
  const size = Math.max(4, Math.min(CELL, Math.floor(900 / columns)));
  useEffect(() => {
    const scale = devicePixelRatio || 1;
    const { current } = canvas;
    current.width = columns * size * scale;
    current.height = layers.length * size * scale;
    current.style.width = `${columns * size}px`;
    current.style.height = `${layers.length * size}px`;
    const draw = current.getContext('2d');
    draw.scale(scale, scale);
    const style = getComputedStyle(current);
    draw.fillStyle = style.getPropertyValue('--accent');
    layers.forEach(({ experts }, row) => {
      const most = Math.max(1, ...experts);
      experts.forEach((value, column) => {
        draw.globalAlpha = 0.06 + 0.94 * (value / most);
        draw.fillRect(column * size, row * size, size - 1, size - 1);
      });
    });
  }, [layers]);
  const move = (event) => {
    const row = Math.floor(event.offsetY / size);
    const column = Math.floor(event.offsetX / size);
    const value = layers[row]?.experts[column];
    if (value === undefined) return setHover('');
    const total = layers[row].experts.reduce((sum, one) => sum + one, 0) || 1;
    setHover(`${layers[row].layer}, expert ${column}: ${value} tokens, ${((100 * value) / total).toFixed(1)}%`);
  };
  const words = layers.map(({ layer, experts }) => `${layer}: busiest is expert ${experts.indexOf(Math.max(...experts))}`);
  return (
    <div class="experts" role="region" aria-label="Experts by layer" tabIndex={0}>
      <canvas ref={canvas} role="img" aria-label={`Experts by layer. ${words.join('; ')}`}
        onMouseMove={move} onMouseLeave={() => setHover('')} />
      <p class="quiet">{hover || 'A row is a layer, a cell an expert; the stronger its colour, the more tokens chose it.'}</p>
    </div>
  );
}

function Experts() {
  const { value } = usePolled(loadExperts);
  if (!value || value.length === 0) return null;
  return <section class="card"><h2>Experts</h2><ExpertMap layers={value} /></section>;
}

export function Cache() {
  const { value: tree, problem } = usePolled(() => getJson(`/radix_tree?limit=${BRANCHES}`));
  const [asked, setAsked] = useState(false);
  const flush = async () => {
    setAsked(false);
    await request('/flush_cache', { body: {} }).catch(() => {});
  };
  return (
    <main class="page">
      <div class="page-head">
        <h1>Cache</h1>
        <span class="space" />
        {asked ? <>
          <Button text="Keep it" label="Keep it as it is" onClick={() => setAsked(false)} />
          <Button text="Forget all prefixes" label="Forget all prefixes of the cache" class="button danger" onClick={flush} />
        </> : <Button text="Flush" label="Flush the cache" onClick={() => setAsked(true)} />}
      </div>
      <Tiles tree={tree} />
      {problem && <p class="problem" role="alert">{problem}</p>}
      <section class="card">
        <h2>Radix tree</h2>
        <div class="legend" aria-hidden="true">
          <span><i class="busy" />running</span><span><i class="fresh" />used lately</span>
          <span><i class="old" />used long ago</span><span><i class="dot" />snapshot</span>
        </div>
        {tree ? <Tree tree={tree} /> : <div class="empty" />}
      </section>
      <Experts />
    </main>
  );
}
