// How quick the page is: node web/bench.mjs BASE_URL CHROMIUM [SECONDS], next to a running server and
// with npm's playwright-core in the folder of this file or above. Prints the first paint, and frames
// while 200 tokens/s stream into a transcript of 50,000 tokens. The stream is made here, so that the
// engine takes no processor from the browser.
import http from 'node:http';
import { chromium } from 'playwright-core';

const [target, executablePath, seconds = '10'] = process.argv.slice(2);
const upstream = new URL(target);
const TOKENS_PER_S = 200;
const WORDS = ('the **radix tree** keeps every `prefix` once and a branch grows roots of its own\n\n' +
  '- one page\n- two pages\n\n```cpp\nint main() { return 0; }\n```\n\n').split(/(?<= |\n)/);

function chunk(i) {
  const text = WORDS[i % WORDS.length];
  const top = Array.from({ length: 5 }, (_, j) => ({ token: `${text}${j}`, logprob: -j }));
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text },
    logprobs: { content: [{ token: text, logprob: -0.1, top_logprobs: top }] } }] })}\n\n`;
}

function stream(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const begun = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    for (; sent < ((performance.now() - begun) * TOKENS_PER_S) / 1000; ++sent) response.write(chunk(sent));
  }, 5);
  response.on('close', () => clearInterval(timer));
}

const proxy = http.createServer((request, response) => {
  if (request.url === '/v1/chat/completions') return stream(response);
  const { host, origin, ...headers } = request.headers;
  const { hostname, port } = upstream;
  const onward = http.request({ hostname, port, path: request.url, method: request.method, headers },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
  return request.pipe(onward);
});
await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${proxy.address().port}/`;

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });

const paints = [];
for (let i = 0; i < 5; ++i) {
  await page.goto(target);
  await page.waitForSelector('.welcome');
  await page.waitForTimeout(300);
  paints.push(await page.evaluate(() =>
    performance.getEntriesByName('first-contentful-paint')[0].startTime));
}
console.log(`first paint: ${paints.map((ms) => Math.round(ms)).join(', ')} ms`);

await page.goto(url);
await page.waitForSelector('.welcome');
await page.evaluate(async ({ words }) => {
  const text = (count) => Array.from({ length: count }, (_, i) => words[i % words.length]).join('');
  const nodes = { 0: { id: 0, parent: null, role: 'root', children: [1], chosen: 0 } };
  for (let id = 1; id <= 100; ++id) {
    nodes[id] = { id, parent: id - 1, role: id % 2 ? 'user' : 'assistant', content: text(500),
      reasoning: '', calls: [], state: 'done', children: id < 100 ? [id + 1] : [], chosen: 0 };
  }
  const opened = indexedDB.open('banyan', 1);
  await new Promise((resolve) => { opened.onsuccess = resolve; });
  const write = opened.result.transaction('chats', 'readwrite');
  write.objectStore('chats').put(
    { id: 'long', title: 'Long', system: null, updated: Date.now(), next: 101, nodes });
  await new Promise((resolve) => { write.oncomplete = resolve; });
}, { words: WORDS });
await page.reload();
await page.locator('.chat-item').first().click();
await page.waitForTimeout(3000);
await page.getByLabel('Message', { exact: true }).fill('Go on');
await page.keyboard.press('Enter');
await page.waitForSelector('.answer.live');
await page.waitForTimeout(1000);
// Of the main thread's processor time, which neighbours do not lengthen as they do a frame.
const session = await page.context().newCDPSession(page);
await session.send('Performance.enable', { timeDomain: 'threadTicks' });
const busy = async () => {
  const { metrics } = await session.send('Performance.getMetrics');
  const of = (wanted) => metrics.find(({ name }) => name === wanted).value * 1000;
  const own = of('ScriptDuration') + of('RecalcStyleDuration') + of('LayoutDuration');
  return { own, all: of('TaskDuration') };
};
const before = await busy();
const frames = await page.evaluate((ms) => new Promise((resolve) => {
  let shifts = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) shifts += entry.value;
  }).observe({ type: 'layout-shift' });
  const times = [];
  const begun = performance.now();
  let last = begun;
  const frame = (now) => {
    times.push(now - last);
    last = now;
    if (now - begun < ms) return requestAnimationFrame(frame);
    times.sort((a, b) => a - b);
    resolve({ count: times.length, seconds: (now - begun) / 1000, shifts,
      p50: times[times.length >> 1], p99: times[Math.floor(times.length * 0.99)] });
  };
  requestAnimationFrame(frame);
}), Number(seconds) * 1000);
const after = await busy();
const aFrame = (name) => ((after[name] - before[name]) / frames.count).toFixed(1);
console.log(`frames: ${(frames.count / frames.seconds).toFixed(1)}/s, half within ` +
  `${frames.p50.toFixed(1)} ms, 99% within ${frames.p99.toFixed(1)} ms; ` +
  `script, style and layout ${aFrame('own')} ms a frame, with painting ${aFrame('all')} ms; layout shift ${frames.shifts.toFixed(4)}`);
await browser.close();
proxy.close();
proxy.closeAllConnections();
