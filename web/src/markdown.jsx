import { Component } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { highlight } from './highlight.js';
import { Icon } from './icons.jsx';
import { blocks, cells, codeParts, grow, inline, items } from './markdown.js';

const GROUP = 12; // blocks that are drawn, or skipped, together

const TAGS = { strong: 'strong', em: 'em', del: 'del' };

function Inline({ parts }) {
  return parts.map((part) => {
    if (part.kind === 'text') return part.text;
    if (part.kind === 'break') return <br />;
    if (part.kind === 'code') return <code>{part.text}</code>;
    if (part.kind === 'link') {
      return <a href={part.href} target="_blank" rel="noopener noreferrer"><Inline parts={part.parts} /></a>;
    }
    const Tag = TAGS[part.kind];
    return <Tag><Inline parts={part.parts} /></Tag>;
  });
}

/** Draws again only when its properties are others. */
class Still extends Component {
  shouldComponentUpdate(next) {
    return Object.keys(next).some((name) => next[name] !== this.props[name]);
  }
}

class CodePart extends Still {
  render({ text, language }) {
    return (
      <span class="code-part">
        {highlight(text, language).map(([kind, piece]) =>
          kind ? <span class={`hl-${kind}`}>{piece}</span> : piece)}
        {'\n'}
      </span>
    );
  }
}

export function CopyButton({ text, label = 'Copy' }) {
  const [done, setDone] = useState(false);
  const timer = useRef(0);
  const copy = async () => {
    await copyText(typeof text === 'function' ? text() : text);
    setDone(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" class="icon-button" onClick={copy} aria-label={done ? 'Copied' : label}
      title={label}>
      <Icon name={done ? 'check' : 'copy'} />
    </button>
  );
}

async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea'); // pages of plain http on another machine
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

function Code({ block }) {
  return (
    <div class="code">
      <div class="code-head">
        <span>{block.language || 'text'}</span>
        <CopyButton text={() => block.lines.join('\n')} label="Copy the code" />
      </div>
      <pre tabIndex={0}><code>
        {codeParts(block.lines).map((text, i) =>
          <CodePart key={i} text={text} language={block.language} />)}
      </code></pre>
    </div>
  );
}

function Table({ block }) {
  const [head, , ...rows] = block.lines;
  return (
    <div class="table" tabIndex={0}>
      <table>
        <thead><tr>{cells(head).map((cell) => <th scope="col"><Inline parts={inline(cell)} /></th>)}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr>{cells(row).map((cell) => <td><Inline parts={inline(cell)} /></td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function List({ block }) {
  const all = items(block.lines);
  const Tag = all[0].ordered ? 'ol' : 'ul';
  return (
    <Tag start={all[0].ordered ? all[0].number : undefined}>
      {all.map(({ lines }) => {
        const inner = blocks(lines.join('\n'));
        const [first, ...rest] = inner;
        if (first?.kind !== 'paragraph') return <li>{inner.map((one) => <Block block={one} />)}</li>;
        return (
          <li><Inline parts={inline(first.text)} />{rest.map((one) => <Block block={one} />)}</li>
        );
      })}
    </Tag>
  );
}

function quoted(block) {
  return blocks(block.lines.map((line) => line.replace(/^\s{0,3}> ?/, '')).join('\n'));
}

function Block({ block }) {
  switch (block.kind) {
    case 'code': return <Code block={block} />;
    case 'table': return <Table block={block} />;
    case 'list': return <List block={block} />;
    case 'rule': return <hr />;
    case 'quote': return <blockquote>{quoted(block).map((one) => <Block block={one} />)}</blockquote>;
    case 'heading': {
      const Tag = `h${Math.min(6, block.level + 2)}`;
      return <Tag><Inline parts={inline(block.text)} /></Tag>;
    }
    default: return <p class={block.cut ? 'cut' : undefined}><Inline parts={inline(block.text)} /></p>;
  }
}

class Group extends Component {
  shouldComponentUpdate({ list }) {
    return list.length !== this.props.list.length || list.some((one, i) => one !== this.props.list[i]);
  }
  render({ list }) {
    return (
      <div class="group">
        {list.map((block) => (
          <div class="block" data-begin={block.begin} data-end={block.end} key={block.begin}>
            <Block block={block} />
          </div>
        ))}
      </div>
    );
  }
}

/** Text that may grow; blocks that are whole are neither read nor drawn again. */
export function Markdown({ text }) {
  const memory = useRef({ text: '', list: [] });
  const { current } = memory;
  if (text !== current.text) {
    const grows = text.startsWith(current.text);
    memory.current = { text, list: grows ? grow(current.list, text) : blocks(text) };
  }
  const { list } = memory.current;
  const groups = [];
  for (let i = 0; i < list.length; i += GROUP) groups.push(list.slice(i, i + GROUP));
  return <div class="markdown">{groups.map((one, i) => <Group key={i} list={one} />)}</div>;
}
