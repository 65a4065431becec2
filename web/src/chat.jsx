import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { server } from './api.js';
import { chats, parentOf, path } from './conversations.js';
import { Button, Icon } from './icons.jsx';
import { Files, Message, editMessage } from './message.jsx';
import { settings } from './settings.js';
import { useObject } from './store.js';
import { Popover, hidePopover } from './tokens.jsx';
import { Window } from './window.jsx';
import { isWriting, rate, send, stopAll, writing } from './writing.js';

const NEAR_PX = 60; // to the end: new text scrolls along
const FILE_MAX = 2e6;

/** Keeps the end in sight as long as the reader is there. */
function useFollow(box, conversation, filled) {
  const following = useRef(true);
  const top = useRef(0);
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
  }, [conversation, filled]);
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    const near = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    if (near) following.current = true;
    else if (scrollTop < top.current) following.current = false;
    top.current = scrollTop;
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
  return { away, toEnd, following, handlers: { onScroll, onWheel: leave, onTouchMove: leave } };
}

const LINE = 85; // characters of one line, more or less
const estimate = (node) => 60 + 24 * Math.ceil((node.content?.length ?? 0) / LINE);

function Messages({ conversation, nodes, following }) {
  const draw = (node, place) => (
    <Message key={node.id} conversation={conversation} node={node} place={place} count={nodes.length}
      brothers={`${parentOf(conversation, node).children.length} ${node.children.length > 0}`} />
  );
  return <Window key={conversation.id} items={nodes} estimate={estimate} draw={draw} following={following} />;
}

function Transcript({ conversation }) {
  useObject(conversation);
  const box = useRef(null);
  const nodes = path(conversation);
  const { away, toEnd, following, handlers } = useFollow(box, conversation, nodes.length > 0);
  const last = nodes.at(-1)?.id;
  useEffect(toEnd, [last]);
  useReveal(toEnd);
  return (
    <div class="transcript-frame">
      <div class="transcript" ref={box} {...handlers} role="log" aria-label="Conversation" aria-live="off"
        tabIndex={0}>
        {nodes.length === 0 ? <div class="column"><Welcome conversation={conversation} /></div>
          : <Messages conversation={conversation} nodes={nodes} following={following} />}
      </div>
      {away && nodes.length > 0 && (
        <button type="button" class="to-end" onClick={toEnd} aria-label="To the end"><Icon name="down" /></button>
      )}
      <Popover />
    </div>
  );
}

let reveal = () => {}; // shows the end of the conversation

function useReveal(toEnd) {
  useEffect(() => {
    reveal = toEnd;
  });
}

/** The last message of the user's is near the end, which may be out of sight and not drawn. */
function editLast(node) {
  reveal();
  editMessage(node);
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
      if (last) editLast(last);
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
      {current.nodes[0].children.length > 0 && <h1 class="unseen">{current.title}</h1>}
      <Transcript conversation={current} />
      <Composer conversation={current} />
    </main>
  );
}
