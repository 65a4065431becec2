// Conversations: trees of messages, kept in the browser's IndexedDB.
//
// A message's children are the ways to go on from it, of which `chosen` is shown. Node 0 is the root.
import { Store, touch } from './store.js';

/** list: [{id, title, updated}], newest first; current: the one that is shown. */
export const chats = new Store({ list: [], current: null, ready: false });

let database = null;
const saving = new Map(); // conversation -> timer

const promised = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

function open() {
  const request = indexedDB.open('banyan', 1);
  request.onupgradeneeded = () => request.result.createObjectStore('chats', { keyPath: 'id' });
  return promised(request);
}

const table = (mode) => database.transaction('chats', mode).objectStore('chats');

export async function load() {
  try {
    database = await open();
    const all = await promised(table('readonly').getAll());
    const list = all.map(summary).sort((a, b) => b.updated - a.updated);
    chats.set({ list, ready: true });
  } catch {
    database = null; // private windows may forbid it: chats last as long as the page
    chats.set({ ready: true });
  }
  if (!chats.value.current) startNew();
}

const summary = ({ id, title, updated }) => ({ id, title, updated });

async function write(conversation) {
  saving.delete(conversation);
  if (!database) return;
  const transaction = database.transaction('chats', 'readwrite');
  const done = promised(transaction.objectStore('chats').put(conversation));
  transaction.commit(); // at once: the page may be closing
  await done;
}

/** Soon, and once for many changes. */
export function save(conversation) {
  conversation.updated = Date.now();
  if (!saving.has(conversation)) {
    saving.set(conversation, setTimeout(() => write(conversation).catch(() => {}), 1000));
  }
  const others = chats.value.list.filter((one) => one.id !== conversation.id);
  const before = chats.value.list[0];
  if (before?.id === conversation.id && before.title === conversation.title) return;
  chats.set({ list: [summary(conversation), ...others] });
}

export function saveAll() {
  for (const [conversation, timer] of saving) {
    clearTimeout(timer);
    write(conversation).catch(() => {});
  }
}

export function startNew() {
  const root = { id: 0, parent: null, role: 'root', children: [], chosen: 0 };
  const conversation = {
    id: `${Date.now()}-${Math.random().toString(36).slice(2, 8)}`,
    title: 'New chat', system: null, updated: Date.now(), next: 1, nodes: { 0: root },
  };
  chats.set({ current: conversation });
  return conversation;
}

export async function select(id) {
  if (chats.value.current?.id === id) return;
  for (const conversation of saving.keys()) {
    if (conversation.id === id) return chats.set({ current: conversation });
  }
  const conversation = await promised(table('readonly').get(id));
  for (const node of Object.values(conversation.nodes)) {
    if (node.state === 'writing' || node.state === 'waiting') node.state = 'interrupted';
  }
  chats.set({ current: conversation });
}

export async function remove(id) {
  for (const [conversation, timer] of saving) {
    if (conversation.id === id) {
      clearTimeout(timer);
      saving.delete(conversation);
    }
  }
  if (database) await promised(table('readwrite').delete(id));
  chats.set({ list: chats.value.list.filter((one) => one.id !== id) });
  if (chats.value.current?.id === id) startNew();
}

// ---- Trees ------------------------------------------------------------------------------------

export function add(conversation, parent, fields) {
  const node = { id: conversation.next++, parent: parent.id, children: [], chosen: 0, ...fields };
  conversation.nodes[node.id] = node;
  parent.children.push(node.id);
  parent.chosen = parent.children.length - 1;
  touch(conversation);
  touch(parent);
  save(conversation);
  return node;
}

export const parentOf = (conversation, node) => conversation.nodes[node.parent];

/** The messages that are shown, from the first. */
export function path(conversation) {
  const nodes = [];
  let node = conversation.nodes[0];
  while (node.children.length > 0) {
    node = conversation.nodes[node.children[Math.min(node.chosen, node.children.length - 1)]];
    nodes.push(node);
  }
  return nodes;
}

/** The messages up to `node`, it included. */
export function pathTo(conversation, node) {
  const nodes = [];
  for (let at = node; at.role !== 'root'; at = conversation.nodes[at.parent]) nodes.unshift(at);
  return nodes;
}

export function choose(conversation, parent, index) {
  parent.chosen = index;
  touch(conversation);
  save(conversation);
}

export function rename(conversation, title) {
  conversation.title = title.replace(/\s+/g, ' ').trim().slice(0, 60) || 'New chat';
  touch(conversation);
  const list = chats.value.list.map((one) =>
    one.id === conversation.id ? { ...one, title: conversation.title } : one);
  chats.set({ list });
  save(conversation);
}
