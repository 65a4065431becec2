import { Component } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { choose, parentOf } from './conversations.js';
import { Button, Icon } from './icons.jsx';
import { CopyButton, Markdown } from './markdown.jsx';
import { keep, touch, useKept, useObject } from './store.js';
import { Tokens, hoverHandlers } from './tokens.jsx';
import {
  again, canContinue, isWriting, rate, resume, send, sendResults, tokensOf,
} from './writing.js';

const seconds = (ms) => ms < 995 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;

function Branches({ conversation, node }) {
  const parent = parentOf(conversation, node);
  const count = parent.children.length;
  if (count < 2) return null;
  const index = parent.children.indexOf(node.id);
  const go = (step) => choose(conversation, parent, index + step);
  return (
    <span class="branches" role="group" aria-label="Branches">
      <Button icon="left" label="The branch before" disabled={index === 0} onClick={() => go(-1)} />
      <span>{index + 1}/{count}</span>
      <Button icon="right" label="The next branch" disabled={index === count - 1} onClick={() => go(1)} />
    </span>
  );
}

function Editor({ conversation, node, close }) {
  const area = useRef(null);
  const [problem, setProblem] = useState('');
  const [text, setText] = useKept(node, 'draft', node.content);
  useEffect(() => {
    area.current.focus();
    area.current.setSelectionRange(text.length, text.length);
  }, []);
  const submit = () => {
    const said = text.trim();
    if (!said && !node.files?.length) return;
    try {
      send(conversation, parentOf(conversation, node), said, node.files);
      close();
    } catch (error) {
      setProblem(error.message);
    }
  };
  const key = (event) => {
    if (event.key === 'Escape') close();
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  return (
    <form class="editor" onSubmit={(event) => { event.preventDefault(); submit(); }}>
      <textarea ref={area} aria-label="Edit the message" onKeyDown={key} value={text}
        rows={Math.min(12, text.split('\n').length + 1)} onInput={(event) => setText(event.target.value)} />
      {problem && <p class="problem" role="alert">{problem}</p>}
      <div class="row">
        <Button text="Cancel" label="Cancel editing" onClick={close} />
        <button type="submit" class="button primary">Send as a new branch</button>
      </div>
    </form>
  );
}

export const Files = ({ files, remove }) => (
  <div class="files">
    {files.map((file, i) => (
      <span class="file" key={file.name + i}>
        <Icon name="file" />
        <span>{file.name}</span>
        <small>{size(file.text.length)}</small>
        {remove && <Button icon="close" label={`Remove ${file.name}`} onClick={() => remove(i)} />}
      </span>
    ))}
  </div>
);

const size = (bytes) => bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`;

/** Opens the editor of a message, now or when it is drawn. */
export function editMessage(node) {
  keep(node, 'draft', node.content);
  keep(node, 'editing', true);
  touch(node);
}

function User({ conversation, node }) {
  const [editing, setEditing] = useKept(node, 'editing', false);
  if (editing) return <Editor conversation={conversation} node={node} close={() => setEditing(false)} />;
  return (
    <>
      <div class="bubble">
        {node.files?.length > 0 && <Files files={node.files} />}
        {node.content && <div class="plain">{node.content}</div>}
      </div>
      <div class="tools">
        <Branches conversation={conversation} node={node} />
        <Button icon="edit" label="Edit and branch" onClick={() => editMessage(node)} />
        <CopyButton text={node.content} label="Copy the message" />
      </div>
    </>
  );
}

function Reasoning({ node }) {
  const live = isWriting(node) && !node.content;
  const [open, setOpen] = useKept(node, 'thoughts', false);
  if (!node.reasoning) return null;
  return (
    <details class="reasoning" open={open} onToggle={(event) => setOpen(event.target.open)}>
      <summary><Icon name="right" />{live ? 'Thinking…' : 'Thoughts'}
        <small>{node.reasoning.length.toLocaleString('en')} characters</small></summary>
      <Markdown text={node.reasoning} />
    </details>
  );
}

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

function Calls({ conversation, node }) {
  const [results, setResults] = useKept(node, 'results', []);
  const [problem, setProblem] = useState('');
  if (!node.calls?.length) return null;
  const open = !isWriting(node) && node.children.length === 0;
  const submit = (event) => {
    event.preventDefault();
    try {
      sendResults(conversation, node, node.calls.map((_, i) => results[i] ?? ''));
    } catch (error) {
      setProblem(error.message);
    }
  };
  return (
    <form class="calls" onSubmit={submit}>
      {node.calls.map((call, i) => (
        <div class="call" key={i}>
          <div class="call-head"><Icon name="tool" /><b>{call.name}</b></div>
          <pre tabIndex={0}>{pretty(call.args)}</pre>
          {open && (
            <label class="field"><span>Result of {call.name}</span>
              <textarea rows={2} value={results[i] ?? ''} placeholder="What the tool returned"
                onInput={(event) => setResults(Object.assign([...results], { [i]: event.target.value }))} />
            </label>
          )}
        </div>
      ))}
      {problem && <p class="problem" role="alert">{problem}</p>}
      {open && <button type="submit" class="button primary">Send the {node.calls.length > 1 ? 'results' : 'result'}</button>}
    </form>
  );
}

function status(node) {
  if (node.state === 'waiting' && node.problem) {
    return `${node.problem}. The answer goes on once the server is back.`;
  }
  if (node.silent > 0) return `Nothing from the server for ${Math.round(node.silent / 1000)} s; still waiting.`;
  if (node.state === 'interrupted') return 'The page was closed while this was written.';
  if (node.state === 'failed') return node.problem;
  if (node.state === 'stopped') return 'Stopped.';
  if (node.finish === 'length') return 'Ended by the limit on its length.';
  return '';
}

function Status({ conversation, node }) {
  const text = status(node);
  if (!text) return null;
  const still = isWriting(node);
  const more = canContinue(node);
  return (
    <p class={`status ${node.state === 'failed' ? 'problem' : ''}`} role="status">
      <span>{text}</span>
      {!still && (
        <Button text={more ? 'Continue' : 'Try again'} label={more ? 'Continue the answer' : 'Try again'}
          onClick={() => resume(conversation, node)} />
      )}
    </p>
  );
}

function Figures({ node }) {
  const speed = rate(node);
  const facts = [];
  if (speed) facts.push(`${speed >= 100 ? Math.round(speed) : speed.toFixed(1)} tokens/s`);
  if (node.usage) {
    const cached = node.usage.prompt_tokens_details?.cached_tokens ?? 0;
    facts.push(`${node.usage.completion_tokens} tokens`);
    facts.push(`prompt ${node.usage.prompt_tokens}${cached ? `, ${cached} cached` : ''}`);
  }
  if (node.time?.first && !isWriting(node)) facts.push(`first after ${seconds(node.time.first)}`);
  if (node.fields?.seed !== undefined && !isWriting(node)) facts.push(`seed ${node.fields.seed}`);
  return <span class="figures">{facts.join(' · ')}</span>;
}

function Assistant({ conversation, node }) {
  const [asTokens, setAsTokens] = useKept(node, 'asTokens', false);
  const live = isWriting(node);
  const tokens = tokensOf(node);
  const empty = live && !node.content && !node.reasoning && !node.calls?.length;
  return (
    <>
      <Reasoning node={node} />
      {empty && !node.problem && <div class="dots" role="status" aria-label="Waiting for the answer"><i /><i /><i /></div>}
      <div class={live ? 'answer live' : 'answer'} {...(asTokens ? {} : hoverHandlers(conversation, node))}>
        {asTokens && tokens ? <Tokens conversation={conversation} node={node} tokens={tokens} />
          : node.content && <Markdown text={node.content} />}
      </div>
      <Calls conversation={conversation} node={node} />
      <Status conversation={conversation} node={node} />
      <div class="tools">
        <Branches conversation={conversation} node={node} />
        <CopyButton text={() => node.content} label="Copy the answer" />
        <Button icon="redo" label="Another answer, as a new branch" onClick={() => again(conversation, node)} />
        {tokens && (
          <Button icon="bars" label="Show tokens by probability" aria-pressed={asTokens}
            onClick={() => setAsTokens(!asTokens)} />
        )}
        <Figures node={node} />
      </div>
    </>
  );
}

function Tool({ node }) {
  const [open, setOpen] = useKept(node, 'result', false);
  return (
    <details class="reasoning" open={open} onToggle={(event) => setOpen(event.target.open)}>
      <summary><Icon name="right" />Result of {node.name}</summary>
      <pre tabIndex={0}>{node.content}</pre>
    </details>
  );
}

const KINDS = { user: User, assistant: Assistant, tool: Tool };
const NAMES = { user: 'You', assistant: 'Answer', tool: 'Tool' };

function Body({ conversation, node, place, count }) {
  useObject(node);
  const Kind = KINDS[node.role];
  return (
    <article class={`message ${node.role}`} aria-label={NAMES[node.role]} aria-posinset={place + 1}
      aria-setsize={count} data-place={place}>
      <h2 class="unseen">{NAMES[node.role]}</h2>
      <Kind conversation={conversation} node={node} />
    </article>
  );
}

/** Drawn again when the message changes, its brothers or its place, not when others do. */
export class Message extends Component {
  shouldComponentUpdate({ node, brothers, place, count }) {
    const { props } = this;
    return node !== props.node || brothers !== props.brothers || place !== props.place ||
      count !== props.count;
  }
  render({ conversation, node, place, count }) {
    return <Body conversation={conversation} node={node} place={place} count={count} key={node.id} />;
  }
}
