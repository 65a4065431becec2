// Tokens with their probabilities: as a coloured text, and as what is under the pointer.
import { Component } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Store } from './store.js';
import { branchAt, isWriting, tokensOf } from './writing.js';

const GROUP = 200;
const HOVER_MS = 220;

export const percent = (logprob) => {
  const p = Math.exp(logprob) * 100;
  return p >= 99.95 ? '100%' : p >= 10 ? `${p.toFixed(1)}%` : p >= 0.01 ? `${p.toFixed(2)}%` : '<0.01%';
};

const level = (logprob) => {
  if (logprob === null) return 'none';
  const p = Math.exp(logprob);
  return p > 0.9 ? 5 : p > 0.6 ? 4 : p > 0.3 ? 3 : p > 0.1 ? 2 : 1;
};

const shown = (text) => text.replace(/ /g, '␣').replace(/\n/g, '⏎').replace(/\t/g, '⇥') || '∅';

/** What the popover tells: {conversation, node, index, rect}, or null. */
export const popover = new Store({ at: null });
let timer = 0;

export function hidePopover(delay = 0) {
  clearTimeout(timer);
  timer = setTimeout(() => popover.value.at && popover.set({ at: null }), delay);
}

function showPopover(at, delay = 0) {
  clearTimeout(timer);
  timer = setTimeout(() => popover.set({ at }), delay);
}

export function Popover() {
  const { at } = popover.use();
  const box = useRef(null);
  const [place, setPlace] = useState(null);
  useEffect(() => {
    if (!at) return setPlace(null);
    const { width, height } = box.current.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.rect.left, innerWidth - width - 8));
    const below = at.rect.bottom + 4;
    const top = below + height > innerHeight - 8 ? Math.max(8, at.rect.top - height - 4) : below;
    setPlace({ left: `${left}px`, top: `${top}px` });
  }, [at]);
  if (!at) return null;
  const token = tokensOf(at.node)?.[at.index];
  if (!token) return null;
  return (
    <div class="popover" role="dialog" aria-label="Token probabilities" ref={box} key={at.index}
      style={place ?? { visibility: 'hidden' }} onMouseEnter={() => clearTimeout(timer)}
      onMouseLeave={() => hidePopover(150)}>
      <Choices at={at} token={token} />
    </div>
  );
}

function Choices({ at, token }) {
  if (token.p === null) return <p class="quiet">Given, not drawn</p>;
  const rows = token.top.some(([text]) => text === token.t) ? token.top
    : [...token.top, [token.t, token.p]];
  const can = !isWriting(at.node) && !at.node.grammar && !at.node.calls?.length && !token.r;
  const take = (text) => {
    hidePopover();
    branchAt(at.conversation, at.node, at.index, text);
  };
  return (
    <>
      <div class="choices">
        {rows.map(([text, logprob]) => {
          const own = text === token.t;
          return (
            <button type="button" class={`choice ${own ? 'own' : ''}`} disabled={own || !can}
              aria-label={`${shown(text)}, ${percent(logprob)}${own ? ', drawn' : can ? ', branch from here' : ''}`}
              onClick={() => take(text)}>
              <span class="choice-text">{shown(text)}</span>
              <span class="choice-bar"><i style={{ width: `${Math.exp(logprob) * 100}%` }} /></span>
              <span class="choice-p">{percent(logprob)}</span>
            </button>
          );
        })}
      </div>
      {can && rows.length > 1 && <p class="quiet">Choose another token to branch there</p>}
    </>
  );
}

class TokenGroup extends Component {
  shouldComponentUpdate({ count, active }) {
    return count !== this.props.count || active !== this.props.active;
  }
  render({ tokens, begin, count, active }) {
    return (
      <span class="token-group">
        {tokens.slice(begin, begin + count).map((token, i) => (
          <span data-i={begin + i} class={`token p${level(token.p)} ${active === begin + i ? 'active' : ''}`}>
            {token.end ? ' ■' : token.t}
          </span>
        ))}
      </span>
    );
  }
}

/** The text as its tokens; arrow keys go from one to the next. */
export function Tokens({ conversation, node, tokens }) {
  const [active, setActive] = useState(-1);
  const box = useRef(null);
  const tell = (index, delay) => {
    const rect = box.current.querySelector(`[data-i="${index}"]`)?.getBoundingClientRect();
    if (rect) showPopover({ conversation, node, index, rect }, delay);
  };
  const over = (event) => {
    const index = event.target.dataset?.i;
    if (index !== undefined) tell(Number(index), 60);
  };
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === 'Escape') return hidePopover();
    if (!step) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(tokens.length - 1, active + step));
    setActive(next);
    tell(next, 0);
  };
  const groups = [];
  for (let i = 0; i < tokens.length; i += GROUP) {
    groups.push(<TokenGroup key={i} tokens={tokens} begin={i} active={active >= i && active < i + GROUP ? active : -1}
      count={Math.min(GROUP, tokens.length - i)} />);
  }
  return (
    <div class="tokens" ref={box} tabIndex={0} role="group" onMouseOver={over} onClick={over}
      onMouseLeave={() => hidePopover(200)} onKeyDown={key} onBlur={() => setActive(-1)}
      aria-label="Tokens by probability; the arrow keys show one after the other">
      {groups}
    </div>
  );
}

// ---- Under the pointer, in drawn Markdown ------------------------------------------------------

function caretAt(x, y) {
  if (document.caretPositionFromPoint) {
    const found = document.caretPositionFromPoint(x, y);
    return found && { node: found.offsetNode, offset: found.offset };
  }
  const range = document.caretRangeFromPoint?.(x, y);
  return range && { node: range.startContainer, offset: range.startOffset };
}

/** Where a block's n-th shown character stands in its source, whose marks are not shown. */
function sourceOffset(source, text, count) {
  let at = 0;
  for (let i = 0; i < count && i < text.length; ++i) {
    const found = source.indexOf(text[i], at);
    if (found >= 0 && found - at < 40) at = found + 1;
  }
  return at;
}

function shownBefore(block, caret) {
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (walker.nextNode()) {
    if (walker.currentNode === caret.node) return count + caret.offset;
    count += walker.currentNode.data.length;
  }
  return -1;
}

function tokenIndex(node, tokens, offset) {
  let at = 0;
  for (let i = 0; i < tokens.length; ++i) {
    if (tokens[i].r) continue;
    at += tokens[i].t.length;
    if (at > offset) return i;
  }
  return -1;
}

function find(node, event) {
  const block = event.target.closest?.('.block');
  const tokens = tokensOf(node);
  const caret = block && tokens && caretAt(event.clientX, event.clientY);
  if (!caret || caret.node.nodeType !== Node.TEXT_NODE || !block.contains(caret.node)) return -1;
  const before = shownBefore(block, caret);
  if (before < 0) return -1;
  const begin = Number(block.dataset.begin);
  const source = node.content.slice(begin, Number(block.dataset.end));
  return tokenIndex(node, tokens, begin + sourceOffset(source, block.textContent, before));
}

/** Handlers for an element that shows a message. */
export function hoverHandlers(conversation, node) {
  if (!matchMedia('(hover: hover)').matches) return {};
  let last = -1;
  return {
    onMouseMove: (event) => {
      if (event.buttons || isWriting(node)) return;
      const index = find(node, event);
      if (index === last && popover.value.at?.node === node) return;
      last = index;
      if (index < 0) return hidePopover(200);
      const rect = new DOMRect(event.clientX - 8, event.clientY - 12, 16, 24);
      showPopover({ conversation, node, index, rect }, HOVER_MS);
    },
    onMouseLeave: () => hidePopover(200),
    onMouseDown: () => hidePopover(),
  };
}
