import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { server } from './api.js';
import { chats, parentOf, path } from './conversations.js';
import { Button, Icon } from './icons.jsx';
import { Files, Message, editMessage } from './message.jsx';
import { settings } from './settings.js';
import { useObject } from './store.js';
import { Popover, hidePopover } from './tokens.jsx';
import { isWriting, rate, send, stopAll, writing } from './writing.js';

const NEAR_PX = 60; // to the end: new text scrolls along
const FIRST_MESSAGES = 30; // that are drawn before earlier ones
const MORE_MESSAGES = 40; // at a time, from then on
const FILE_MAX = 2e6;

/** How many of the last messages are drawn: soon all, but not at once. */
function useShown(conversation, count) {
  const [shown, setShown] = useState({ conversation, count: FIRST_MESSAGES });
  const now = shown.conversation === conversation ? shown.count : FIRST_MESSAGES;
  useEffect(() => {
    if (now >= count) return undefined;
    const idle = window.requestIdleCallback ?? ((run) => setTimeout(run, 30));
    const cancel = window.cancelIdleCallback ?? clearTimeout;
    const due = idle(() => setShown({ conversation, count: now + MORE_MESSAGES }));
    return () => cancel(due);
  }, [conversation, now, count]);
  return now;
}

/** Keeps the end in sight as long as the reader is there. */
function useFollow(box, conversation) {
  const following = useRef(true);
  const [away, setAway] = useState(false);
  useLayoutEffect(() => {
    following.current = true;
    const { current: element } = box;
    const down = () => following.current && (element.scrollTop = element.scrollHeight);
    const seen = new ResizeObserver(down);
    seen.observe(element.firstElementChild);
    seen.observe(element);
    down();
    return () => seen.disconnect();
  }, [conversation]);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    const near = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    if (near) following.current = true;
    setAway(!near);
    hidePopover();
  };
  const leave = (event) => {
    if (event.type !== 'wheel' || event.deltaY < 0) following.current = false;
  };
  const toEnd = () => {
    following.current = true;
    box.current.scrollTop = box.current.scrollHeight;
  };
  return { away, toEnd, handlers: { onScroll, onWheel: leave, onTouchMove: leave } };
}

function Transcript({ conversation }) {
  useObject(conversation);
  const box = useRef(null);
  const nodes = path(conversation);
  const shown = useShown(conversation, nodes.length);
  const { away, toEnd, handlers } = useFollow(box, conversation);
  const last = nodes.at(-1)?.id;
  useEffect(toEnd, [last]);
  return (
    <div class="transcript-frame">
      <div class="transcript" ref={box} {...handlers} role="log" aria-label="Conversation" aria-live="off"
        tabIndex={-1}>
        <div class="column">
          {nodes.length === 0 ? <Welcome conversation={conversation} /> : nodes.slice(-shown).map((node) => (
            <Message key={node.id} conversation={conversation} node={node}
              brothers={`${parentOf(conversation, node).children.length} ${node.children.length > 0}`} />
          ))}
        </div>
      </div>
      {away && nodes.length > 0 && (
        <button type="button" class="to-end" onClick={toEnd} aria-label="To the end"><Icon name="down" /></button>
      )}
      <Popover />
    </div>
  );
}

const IDEAS = [
  'Tell me a story about a fox named Ruby.',
  'Mia has 12 apples. Mia buys 7 more. How many apples does Mia have now?',
  'Write a haiku about a tree whose branches grow roots.',
  'What is a radix tree good for?',
];

function Welcome({ conversation }) {
  const { model } = server.use();
  return (
    <div class="welcome">
      <Icon name="tree" />
      <h1>{model ? model.split('/').at(-1) : 'Banyan'}</h1>
      <p>Every prefix is computed once. Edit a message or ask for another answer, and it branches from what is there.</p>
      <div class="ideas">
        {IDEAS.map((idea) => (
          <button type="button" class="idea" onClick={() => trySend(conversation, idea)}>{idea}</button>
        ))}
      </div>
    </div>
  );
}

function trySend(conversation, text, files) {
  send(conversation, path(conversation).at(-1) ?? conversation.nodes[0], text, files);
}

async function readFiles(list) {
  const files = [];
  const refused = [];
  for (const file of list) {
    const text = file.size <= FILE_MAX ? await file.text() : null;
    if (text === null) refused.push(`${file.name} is larger than 2 MB`);
    else if (text.includes('\0')) refused.push(`${file.name} is not a text file`);
    else files.push({ name: file.name, text });
  }
  return { files, problem: refused.join('; ') };
}

function useFiles() {
  const [files, setFiles] = useState([]);
  const [problem, setProblem] = useState('');
  const take = async (list) => {
    const read = await readFiles(list);
    setFiles((before) => [...before, ...read.files]);
    setProblem(read.problem);
  };
  return { files, setFiles, problem, setProblem, take };
}

function Composer({ conversation }) {
  const area = useRef(null);
  const picker = useRef(null);
  const { count } = writing.use();
  const { grammar, tools } = settings.use();
  const { files, setFiles, problem, setProblem, take } = useFiles();
  const [text, setText] = useState('');
  const answer = count > 0 ? path(conversation).find(isWriting) : undefined;
  const live = answer !== undefined;
  useEffect(() => area.current.focus({ preventScroll: true }), [conversation]);
  const submit = (event) => {
    event?.preventDefault();
    if (live || (!text.trim() && files.length === 0)) return;
    try {
      trySend(conversation, text.trim(), files);
      setText('');
      setFiles([]);
      setProblem('');
    } catch (error) {
      setProblem(error.message);
    }
  };
  const key = (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event);
    if (event.key === 'ArrowUp' && !text) {
      event.preventDefault();
      const last = path(conversation).filter((node) => node.role === 'user').at(-1);
      if (last) editMessage(last);
    }
  };
  const paste = (event) => {
    if (event.clipboardData.files.length > 0) {
      event.preventDefault();
      take(event.clipboardData.files);
    }
  };
  const drop = (event) => {
    event.preventDefault();
    take(event.dataTransfer.files);
  };
  return (
    <form class="composer" onSubmit={submit} onDragOver={(event) => event.preventDefault()} onDrop={drop}>
      {problem && <p class="problem" role="alert">{problem}</p>}
      <div class="composer-box">
        {files.length > 0 && <Files files={files} remove={(i) => setFiles(files.filter((_, j) => j !== i))} />}
        <div class="grow" data-text={`${text} `}>
          <textarea ref={area} rows={1} value={text} placeholder="Write a message" aria-label="Message"
            onInput={(event) => setText(event.target.value)} onKeyDown={key} onPaste={paste} />
        </div>
        <div class="row">
          <Button icon="clip" label="Attach text files" onClick={() => picker.current.click()} />
          <input type="file" multiple hidden ref={picker} aria-label="Text files"
            onChange={(event) => { take(event.target.files); event.target.value = ''; }} />
          {grammar !== 'none' && <span class="chip">{grammar === 'json_schema' ? 'JSON schema' : grammar}</span>}
          {tools.trim() && <span class="chip">tools</span>}
          <span class="space" />
          {live && <LiveRate node={answer} />}
          {live ? <button type="button" class="send" aria-label="Stop" title="Stop (Esc)" onClick={stopAll}><Icon name="stop" /></button>
            : <button type="submit" class="send" aria-label="Send" title="Send (Enter)" disabled={!text.trim() && files.length === 0}><Icon name="send" /></button>}
        </div>
      </div>
    </form>
  );
}

/** How fast the answer is written, in a place that does not move. */
function LiveRate({ node }) {
  useObject(node);
  const speed = rate(node);
  return <span class="figures">{speed ? `${speed >= 100 ? Math.round(speed) : speed.toFixed(1)} tokens/s` : ''}</span>;
}

export function Chat() {
  const { current } = chats.use();
  if (!current) return null;
  return (
    <main class="chat">
      <Transcript conversation={current} />
      <Composer conversation={current} />
    </main>
  );
}
