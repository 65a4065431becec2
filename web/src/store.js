// Values that components watch. A change is shown in the next frame, once, however many there were.
import { useEffect, useState } from 'preact/hooks';

const frame = (run) =>
  document.hidden ? setTimeout(run, 100) : requestAnimationFrame(run);

let due = null;

function flush() {
  const watchers = due;
  due = null;
  for (const watcher of watchers) watcher();
}

/** Calls each watcher in the next frame. */
export function schedule(watchers) {
  if (due === null) {
    due = new Set();
    frame(flush);
  }
  for (const watcher of watchers) due.add(watcher);
}

export class Store {
  constructor(value) {
    this.value = value;
    this.watchers = new Set();
  }

  set(change) {
    this.value = { ...this.value, ...change };
    schedule(this.watchers);
  }

  /** Draws the component again after each change. */
  use() {
    useWatch(this.watchers);
    return this.value;
  }
}

export function useWatch(watchers) {
  const [, draw] = useState(0);
  useEffect(() => {
    const watcher = () => draw((count) => count + 1);
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }, [watchers]);
}

/** An object that changes in place, such as a message that is being written. */
export function useObject(object) {
  if (!object.watchers) {
    // Not enumerable, so that it is not stored with the object.
    Object.defineProperty(object, 'watchers', { value: new Set() });
  }
  useWatch(object.watchers);
  return object;
}

const kept = new WeakMap(); // object -> {name: value}

/** As useState, but it outlives the component: what people have opened or begun to write. */
export function useKept(object, name, initial) {
  const [, draw] = useState(0);
  const set = (value) => {
    keep(object, name, value);
    draw((count) => count + 1);
  };
  const values = kept.get(object);
  return [values && name in values ? values[name] : initial, set];
}

export function keep(object, name, value) {
  kept.set(object, { ...kept.get(object), [name]: value });
}

export function touch(object) {
  if (object.watchers) schedule(object.watchers);
}

/** Kept in localStorage, field by field as far as `defaults` knows them. */
export class SavedStore extends Store {
  constructor(key, defaults) {
    super({ ...defaults, ...read(key, {}) });
    this.key = key;
  }

  set(change) {
    super.set(change);
    try {
      localStorage.setItem(this.key, JSON.stringify(this.value));
    } catch {
      // Storage is full or forbidden: the value lasts as long as the page.
    }
  }
}

function read(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}
