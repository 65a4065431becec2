// Colours for code: strings, comments, numbers and words that most languages share.
const WORDS = 'abstract and as async await break case catch class const continue def default del do ' +
  'elif else enum except export extends false finally fn for from func function global go if impl ' +
  'import in interface is lambda let match mod mut namespace new nil None not null or package pass ' +
  'private protected public pub raise return self static struct super switch template this throw ' +
  'trait True False true try type typedef typename use using var virtual void where while with yield ' +
  'select insert update create table SELECT FROM WHERE INSERT UPDATE CREATE TABLE JOIN AND OR';

const HASH = /^(py|python|sh|bash|zsh|shell|console|ruby|rb|yaml|yml|toml|perl|r|make|makefile|cmake|dockerfile)?$/i;
const STRING = '"(?:[^"\\\\\\n]|\\\\.)*"|\'(?:[^\'\\\\\\n]|\\\\.)*\'|`(?:[^`\\\\]|\\\\.)*`';
const SLASHES = '\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?\\*\\/';

const scanners = new Map();

function scanner(language) {
  const hash = HASH.test(language);
  let found = scanners.get(hash);
  if (!found) {
    const comment = hash ? '#[^\\n]*' : SLASHES;
    const words = WORDS.split(' ').join('|');
    found = new RegExp(`(${comment})|(${STRING})|\\b(\\d[\\w.]*)\\b|\\b(${words})\\b`, 'g');
    scanners.set(hash, found);
  }
  return found;
}

const KINDS = [null, 'comment', 'string', 'number', 'word'];

/** [[kind or '', text], ...] */
export function highlight(text, language) {
  if (/^(text|txt|plain|markdown|md|diff)$/i.test(language)) return [['', text]];
  const pieces = [];
  let at = 0;
  for (const match of text.matchAll(scanner(language))) {
    if (match.index > at) pieces.push(['', text.slice(at, match.index)]);
    pieces.push([KINDS[match.findIndex((group, i) => i > 0 && group !== undefined)], match[0]]);
    at = match.index + match[0].length;
  }
  if (at < text.length) pieces.push(['', text.slice(at)]);
  return pieces;
}
