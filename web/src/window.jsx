// A list so long that only what is in sight, and some around it, is in the document.
//
// An item's height is an estimate until it has been drawn. When heights turn out otherwise, or
// change, what is in sight stays where it is, unless the reader follows the end: browsers see to
// that, or where they do not, this keeps the first item in sight in its place.
import { Component, createRef } from 'preact';

const NEED = 6; // items drawn around those in sight
const REACH = 40; // the same once there is time, so that text nearby can be selected and found
const STEP = 8; // items at a time, until then

const ANCHORED = CSS.supports('overflow-anchor', 'auto');
const heights = new WeakMap(); // item -> px, when it was last drawn
const later = (run) => window.requestIdleCallback?.(run) ?? setTimeout(run, 30);

/** Where items begin, from the top of the first. */
class Ruler {
  constructor(items, estimate) {
    this.items = items;
    this.places = new Map(items.map((item, i) => [item, i]));
    this.sizes = Float64Array.from(items, (item) => heights.get(item) ?? estimate(item));
    this.tops = new Float64Array(items.length + 1);
    this.known = 0; // tops up to this one are right
  }

  isOf(items) {
    return items.length === this.items.length && items.every((item, i) => item === this.items[i]);
  }

  resize(item, height) {
    heights.set(item, height);
    const place = this.places.get(item);
    if (place === undefined || this.sizes[place] === height) return false;
    this.sizes[place] = height;
    this.known = Math.min(this.known, place);
    return true;
  }

  top(place) {
    for (; this.known < place; ++this.known) {
      this.tops[this.known + 1] = this.tops[this.known] + this.sizes[this.known];
    }
    return this.tops[place];
  }

  /** The item that is `y` below the top; the nearest if there is none. */
  at(y) {
    let begin = 0;
    let end = this.items.length - 1;
    while (begin < end) {
      const middle = (begin + end + 1) >> 1;
      if (this.top(middle) <= y) begin = middle;
      else end = middle - 1;
    }
    return begin;
  }
}

/**
 * items: objects that last; estimate: item -> px; draw: (item, place) -> an element with a key
 * and, as data-place, its place; following: a ref, true while the end is kept in sight. The parent element scrolls.
 */
export class Window extends Component {
  column = createRef();
  range = null; // {begin, end} of the items that are drawn
  anchor = null; // {item, offset}: the first in sight, and where it is
  held = null; // the item with the focus, drawn wherever it is
  owners = new Map(); // element -> item
  sizes = new ResizeObserver((entries) => this.measured(entries));

  componentDidMount() {
    this.scroller = this.column.current.parentElement;
    this.scroller.addEventListener('scroll', this.look, { passive: true });
    this.observe();
    this.look();
  }

  componentDidUpdate() {
    this.observe();
    this.look();
  }

  componentWillUnmount() {
    this.scroller.removeEventListener('scroll', this.look);
    this.sizes.disconnect();
    this.over = true;
  }

  observe() {
    const { items } = this.ruler;
    const drawn = new Set(this.column.current.children);
    for (const element of this.owners.keys()) {
      if (drawn.has(element)) continue;
      this.sizes.unobserve(element);
      this.owners.delete(element);
    }
    for (const element of drawn) {
      const { place } = element.dataset;
      if (place === undefined || this.owners.get(element) === items[place]) continue;
      this.owners.set(element, items[place]);
      this.sizes.observe(element);
    }
  }

  measured(entries) {
    let changed = false;
    for (const { target, borderBoxSize } of entries) {
      const item = this.owners.get(target);
      if (item && target.isConnected) {
        changed = this.ruler.resize(item, borderBoxSize[0].blockSize) || changed;
      }
    }
    if (changed) this.stay();
  }

  stay() {
    const { scroller, anchor, ruler, props } = this;
    const place = ruler.places.get(anchor?.item);
    if (props.following.current) {
      scroller.scrollTop = scroller.scrollHeight;
    } else if (!ANCHORED && place !== undefined) {
      const top = ruler.top(place) + this.padding() - anchor.offset;
      if (Math.abs(top - scroller.scrollTop) >= 0.5) scroller.scrollTop = top;
    }
    this.look();
  }

  padding() {
    return this.column.current.firstElementChild.offsetTop;
  }

  sight() {
    const { scrollTop, clientHeight } = this.scroller;
    const top = scrollTop - this.padding();
    return { first: this.ruler.at(top), last: this.ruler.at(top + clientHeight), top };
  }

  /** Draws what has come into sight. */
  look = () => {
    const { first, last, top } = this.sight();
    const { items } = this.ruler;
    if (items.length === 0) return;
    this.anchor = { item: items[first], offset: this.ruler.top(first) - top };
    const begin = Math.max(0, first - NEED);
    const end = Math.min(items.length, last + 1 + NEED);
    if (begin < this.range.begin || end > this.range.end) this.draw(begin, end, 0);
    this.grow();
  };

  grow() {
    if (this.due) return;
    this.due = true;
    later(() => {
      this.due = false;
      if (this.over) return;
      const { first, last } = this.sight();
      if (this.draw(first - NEED, last + 1 + NEED, STEP)) this.grow();
    });
  }

  /** Draws these and keeps those around them, of which there may be `more`. Whether that changes. */
  draw(begin, end, more) {
    const before = this.range;
    const apart = before.end <= begin || before.begin >= end;
    const reach = REACH - NEED;
    const first = apart ? begin : Math.min(begin, Math.max(before.begin - more, begin - reach));
    const last = apart ? end : Math.max(end, Math.min(before.end + more, end + reach));
    this.range = { begin: Math.max(0, first), end: Math.min(this.ruler.items.length, last) };
    const changed = this.range.begin !== before.begin || this.range.end !== before.end;
    if (changed) this.setState({});
    return changed;
  }

  take = (event) => {
    this.held = this.owners.get(event.target.closest('[data-place]')) ?? null;
  };

  release = () => {
    this.held = null;
  };

  places() {
    const { begin, end } = this.range;
    const places = Array.from({ length: end - begin }, (_, i) => begin + i);
    const held = this.ruler.places.get(this.held);
    if (held < begin) places.unshift(held);
    if (held >= end) places.push(held);
    return places;
  }

  render({ items, estimate, draw }) {
    if (!this.ruler?.isOf(items)) this.ruler = new Ruler(items, estimate);
    const count = items.length;
    this.range ??= { begin: Math.max(0, count - 2 * NEED), end: count }; // it begins at its end
    const { begin, end } = this.range;
    this.range = { begin: Math.min(begin, Math.max(0, count - NEED)), end: Math.min(end, count) };
    const parts = [];
    let gaps = 0;
    let at = 0;
    const gap = (place) => {
      const height = `${this.ruler.top(place) - this.ruler.top(at)}px`;
      parts.push(<div key={`gap ${gaps++}`} aria-hidden="true" style={{ height }} />);
    };
    gap(0);
    for (const place of this.places()) {
      if (place > at) gap(place);
      parts.push(draw(items[place], place));
      at = place + 1;
    }
    if (at < count) gap(count);
    return <div class="column" ref={this.column} onFocusIn={this.take} onFocusOut={this.release}>{parts}</div>;
  }
}
