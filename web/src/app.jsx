import { useEffect, useState } from 'preact/hooks';
import { access, pollNow, server, setKey, shareOf } from './api.js';
import { Cache } from './cache.jsx';
import { Chat } from './chat.jsx';
import { chats, remove, rename, select, startNew } from './conversations.js';
import { Button, Icon } from './icons.jsx';
import { count } from './numbers.js';
import { Settings } from './panels.jsx';
import { Playground } from './playground.jsx';
import { hidePopover } from './tokens.jsx';
import { stopAll } from './writing.js';

const VIEWS = [['chat', 'Chat', 'chat'], ['playground', 'Playground', 'lab'], ['cache', 'Cache', 'tree']];
const wide = () => innerWidth >= 1100;

const viewOf = (hash) => VIEWS.find(([name]) => `#${name}` === hash)?.[0] ?? 'chat';

function useView() {
  const [view, setView] = useState(viewOf(location.hash));
  useEffect(() => {
    const change = () => setView(viewOf(location.hash));
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return view;
}

function ChatItem({ one, current, close }) {
  const [asked, setAsked] = useState(false);
  const [naming, setNaming] = useState(false);
  const open = () => {
    select(one.id);
    location.hash = '#chat';
    close();
  };
  if (naming) {
    const done = (event) => {
      setNaming(false);
      if (event.target.value.trim()) rename(current, event.target.value);
    };
    return <li><input class="rename" autofocus value={one.title} aria-label="Title" onBlur={done}
      onKeyDown={(event) => { if (event.key === 'Enter') event.target.blur(); if (event.key === 'Escape') setNaming(false); }} /></li>;
  }
  const active = current?.id === one.id;
  return (
    <li class={active ? 'active' : ''}>
      <button type="button" class="chat-item" aria-current={active} onClick={open}>{one.title}</button>
      {active && !asked && <Button icon="edit" label={`Rename ${one.title}`} onClick={() => setNaming(true)} />}
      {asked ? <Button icon="check" label={`Delete ${one.title}`} class="icon-button danger" onClick={() => remove(one.id)}
        onBlur={() => setAsked(false)} />
        : <Button icon="trash" label={`Delete ${one.title}…`} onClick={() => setAsked(true)} />}
    </li>
  );
}

function Sidebar({ view, close }) {
  const { list, current } = chats.use();
  const fresh = () => {
    startNew();
    location.hash = '#chat';
    close();
  };
  return (
    <nav class="sidebar" aria-label="Views and chats">
      <div class="brand"><Icon name="tree" /><b>Banyan</b>
        <Button icon="close" label="Close the menu" class="icon-button only-narrow" onClick={close} /></div>
      <button type="button" class="new" onClick={fresh} title="Ctrl+K"><Icon name="plus" />New chat</button>
      <ul class="views">
        {VIEWS.map(([name, label, icon]) => (
          <li><a href={`#${name}`} aria-current={view === name ? 'page' : undefined} onClick={close}>
            <Icon name={icon} />{label}</a></li>
        ))}
      </ul>
      <h2>Chats</h2>
      <ul class="chats">
        {list.map((one) => <ChatItem key={one.id} one={one} current={current} close={close} />)}
        {list.length === 0 && <li class="quiet none">Chats are kept in this browser.</li>}
      </ul>
    </nav>
  );
}

function Speed() {
  const { status, info, speed, limit } = server.use();
  const waiting = info?.internal_states[0].num_queue_reqs;
  const share = shareOf(speed, limit);
  const note = limit ? `; this machine's memory and processors allow ${count(limit)}` : '';
  return (
    <span class="speed" title={`Tokens a second of the whole server${note}`}>
      {status === 'ready' && speed >= 1 && <>{Math.round(speed)} tokens/s
        {share && <span class="only-wide"> · {share}</span>}</>}
      {waiting > 0 && ` · ${waiting} waiting`}
    </span>
  );
}

const WORDS = { ready: 'Ready', loading: 'Loading', lost: 'No connection', locked: 'Locked', unknown: 'Connecting' };

function TopBar({ view, toggleMenu, toggleSettings, settingsOpen }) {
  const { status, model, info } = server.use();
  const state = info?.internal_states[0];
  const busy = state?.num_running_reqs > 0;
  return (
    <header class="topbar">
      <Button icon="menu" label="Menu" class="icon-button only-narrow" onClick={toggleMenu} />
      <div class="model">
        <span class={`lamp ${status} ${busy ? 'busy' : ''}`} role="img" aria-label={WORDS[status]} title={WORDS[status]} />
        <b>{model ? model.split('/').at(-1) : 'Banyan'}</b>
        {info && <small class="only-wide">{info.context_length.toLocaleString('en')} tokens of context · {info.kernels}</small>}
      </div>
      <span class="space" />
      <Speed />
      {view === 'chat' && <Button icon="tune" label="Settings" aria-expanded={settingsOpen} onClick={toggleSettings} />}
    </header>
  );
}

function useNow(active) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!active) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

function Banner() {
  const { status, retryAt, detail } = server.use();
  const now = useNow(status === 'lost');
  if (status === 'lost') {
    const wait = Math.max(0, Math.ceil((retryAt - now) / 1000));
    return (
      <div class="banner" role="alert">
        <span><b>The server cannot be reached.</b> {wait > 0 ? `Trying again in ${wait} s.` : 'Trying again…'}</span>
        <Button text="Try now" label="Try now to connect" onClick={pollNow} />
      </div>
    );
  }
  if (status === 'loading') {
    return <div class="banner calm" role="status"><span><b>{detail || 'Loading model'}.</b> Requests wait until it is ready.</span></div>;
  }
  if (status === 'locked') return <Lock />;
  return null;
}

function Lock() {
  const { key } = access.use();
  const [text, setText] = useState(key);
  const submit = (event) => {
    event.preventDefault();
    setKey(text);
  };
  return (
    <form class="banner calm" role="alert" onSubmit={submit}>
      <Icon name="key" />
      <label><b>{key ? 'The server does not take this API key.' : 'The server asks for an API key.'}</b>
        <input type="password" autocomplete="off" value={text} aria-label="API key" placeholder="API key"
          onInput={(event) => setText(event.target.value)} /></label>
      <button type="submit" class="button primary">Unlock</button>
    </form>
  );
}

function useKeys({ closeAll }) {
  useEffect(() => {
    const key = (event) => {
      const command = event.ctrlKey || event.metaKey;
      if (event.key === 'Escape') {
        stopAll();
        hidePopover();
        closeAll();
      } else if (command && event.key === 'k') {
        event.preventDefault();
        startNew();
        location.hash = '#chat';
      } else if (event.altKey && '123'.includes(event.key)) {
        event.preventDefault();
        location.hash = `#${VIEWS[Number(event.key) - 1][0]}`;
      }
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
}

const PAGES = { chat: Chat, playground: Playground, cache: Cache };

export function App() {
  const view = useView();
  const { current } = chats.use();
  const [menu, setMenu] = useState(false);
  const [settingsOpen, setSettings] = useState(wide());
  const closeDrawers = () => {
    setMenu(false);
    if (!wide()) setSettings(false);
  };
  useKeys({ closeAll: closeDrawers });
  const View = PAGES[view];
  const panel = view === 'chat' && settingsOpen && current;
  return (
    <div class={`app ${menu ? 'menu-open' : ''} ${panel ? 'panel-open' : ''}`}>
      <Sidebar view={view} close={() => setMenu(false)} />
      <div class="middle">
        <TopBar view={view} settingsOpen={settingsOpen} toggleMenu={() => setMenu(!menu)}
          toggleSettings={() => setSettings(!settingsOpen)} />
        <Banner />
        <View />
      </div>
      {panel && <Settings close={() => setSettings(false)} />}
      <div class="scrim" onClick={closeDrawers} />
    </div>
  );
}
