// Markdown as models write it, cut into blocks. Blocks end where no later text can change them, so
// while a text grows only its last block is read again.

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`\n]*)$/;
const LIST = /^(\s*)([-*+]|\d{1,9}[.)])\s+/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const LONG = 4000; // characters of a paragraph or lines of code that are drawn as one
const CODE_LINES = 40;

/** [{kind, begin, text, ...}]; `begin` is where the block begins in the text. */
export function blocks(text, from = 0) {
  const found = [];
  let at = from;
  while (at < text.length) {
    const end = lineEnd(text, at);
    const line = text.slice(at, end);
    if (line.trim() === '') {
      at = end + 1;
      continue;
    }
    const block = one(text, at, line, end);
    found.push(block);
    at = block.end;
  }
  return found;
}

function lineEnd(text, at) {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end;
}

function one(text, begin, line, end) {
  const fence = FENCE.exec(line);
  if (fence) return code(text, begin, end, fence);
  const heading = HEADING.exec(line);
  if (heading) return { kind: 'heading', level: heading[1].length, text: heading[2], begin, end: end + 1 };
  if (RULE.test(line)) return { kind: 'rule', text: '', begin, end: end + 1 };
  if (line.includes('|') && TABLE_RULE.test(text.slice(end + 1, lineEnd(text, end + 1)))) {
    return gather('table', text, begin, (next) => next.includes('|'));
  }
  if (/^\s{0,3}>/.test(line)) return gather('quote', text, begin, (next) => /^\s{0,3}>/.test(next));
  if (LIST.test(line)) return list(text, begin);
  return paragraph(text, begin);
}

function code(text, begin, end, [, indent, mark, language]) {
  const close = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);
  const lines = [];
  let at = end + 1;
  while (at < text.length) {
    const stop = lineEnd(text, at);
    const line = text.slice(at, stop);
    at = stop + 1;
    if (close.test(line)) return { kind: 'code', language: language.trim(), lines, begin, end: at };
    lines.push(indent && line.startsWith(indent) ? line.slice(indent.length) : line);
  }
  return { kind: 'code', language: language.trim(), lines, begin, end: at, open: true };
}

function gather(kind, text, begin, belongs) {
  let at = begin;
  const lines = [];
  while (at < text.length) {
    const end = lineEnd(text, at);
    const line = text.slice(at, end);
    if (!belongs(line)) break;
    lines.push(line);
    at = end + 1;
  }
  return { kind, lines, begin, end: at };
}

function list(text, begin) {
  let blank = false;
  let ended = begin;
  const lines = [];
  for (let at = begin; at < text.length;) {
    const end = lineEnd(text, at);
    const line = text.slice(at, end);
    if (line.trim() === '') {
      if (blank) break;
      blank = true;
    } else if (LIST.test(line) || (/^\s{2,}/.test(line)) || (!blank && !starts(line))) {
      blank = false;
    } else {
      break;
    }
    lines.push(line);
    at = end + 1;
    if (!blank) ended = at;
  }
  while (lines.at(-1)?.trim() === '') lines.pop();
  return { kind: 'list', lines, begin, end: ended };
}

const starts = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) ||
  /^\s{0,3}>/.test(line);

function paragraph(text, begin) {
  let at = begin;
  while (at < text.length) {
    const end = lineEnd(text, at);
    const line = text.slice(at, end);
    if (line.trim() === '' || (at > begin && (starts(line) || LIST.test(line)))) break;
    if (end - begin > LONG) {
      const space = text.indexOf(' ', begin + LONG);
      const cut = space < 0 || space > end ? end : space;
      return { kind: 'paragraph', text: text.slice(begin, cut), begin, end: cut + 1, cut: true };
    }
    at = end + 1;
  }
  return { kind: 'paragraph', text: text.slice(begin, Math.min(at, text.length)).trimEnd(), begin, end: at };
}

/** What blocks() would give for `text`, where `before` is of a beginning of it. */
export function grow(before, text) {
  if (before.length === 0) return blocks(text);
  const kept = before.slice(0, -1);
  return kept.concat(blocks(text, before.at(-1).begin));
}

/** The items of a list: [{ordered, number, lines}], where deeper lines have lost their indent. */
export function items(lines) {
  const depth = LIST.exec(lines[0])[1].length;
  const found = [];
  for (const line of lines) {
    const mark = LIST.exec(line);
    if (mark && mark[1].length <= depth + 1) {
      found.push({ ordered: /\d/.test(mark[2]), number: parseInt(mark[2], 10),
        lines: [line.slice(mark[0].length)] });
    } else {
      found.at(-1).lines.push(line.replace(new RegExp(`^\\s{0,${depth + 4}}`), (space) =>
        ' '.repeat(Math.max(0, space.length - depth - 2))));
    }
  }
  return found;
}

export const cells = (line) =>
  line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((cell) => cell.trim());

/** Groups of lines of code, each drawn on its own. */
export function codeParts(lines) {
  const parts = [];
  for (let i = 0; i < lines.length; i += CODE_LINES) {
    parts.push(lines.slice(i, i + CODE_LINES).join('\n'));
  }
  return parts;
}

const INLINE = new RegExp([
  '(`+)(.+?)\\1(?!`)', // code
  '\\*\\*(\\S(?:.*?\\S)?)\\*\\*', // strong
  '(?<![\\w_])__(\\S(?:.*?\\S)?)__(?![\\w_])', // strong
  '\\*(\\S(?:[^*]*?\\S)?)\\*', // emphasis
  '(?<![\\w_])_(\\S(?:[^_]*?\\S)?)_(?![\\w_])', // emphasis
  '~~(\\S(?:.*?\\S)?)~~', // deleted
  '\\[([^\\]\\n]+)\\]\\(([^)\\s]+)(?:\\s+"[^"]*")?\\)', // link
  '(https?:\\/\\/[^\\s<>()]+[^\\s<>().,;:!?\'"])', // address
  '\\\\([\\\\`*_{}\\[\\]()#+\\-.!|~>])', // escaped
].join('|'), 's');

const SAFE = /^(https?:|mailto:)/i;

/** [{kind: 'text' | 'code' | 'strong' | 'em' | 'del' | 'link' | 'break', text, parts, href}] */
export function inline(text) {
  const parts = [];
  const plain = (piece) => {
    piece.split('\n').forEach((line, i) => {
      if (i > 0) parts.push({ kind: 'break' });
      if (line) parts.push({ kind: 'text', text: line });
    });
  };
  while (text) {
    const match = INLINE.exec(text);
    if (!match) break;
    plain(text.slice(0, match.index));
    text = text.slice(match.index + match[0].length);
    const [whole, , code, b1, b2, e1, e2, del, label, href, address, escaped] = match;
    const strong = b1 ?? b2;
    const em = e1 ?? e2;
    if (code !== undefined) parts.push({ kind: 'code', text: code });
    else if (strong !== undefined) parts.push({ kind: 'strong', parts: inline(strong) });
    else if (em !== undefined) parts.push({ kind: 'em', parts: inline(em) });
    else if (del !== undefined) parts.push({ kind: 'del', parts: inline(del) });
    else if (address) parts.push({ kind: 'link', href: address, parts: [{ kind: 'text', text: address }] });
    else if (escaped) parts.push({ kind: 'text', text: escaped });
    else if (SAFE.test(href)) parts.push({ kind: 'link', href, parts: inline(label) });
    else plain(whole);
  }
  plain(text);
  return parts;
}
