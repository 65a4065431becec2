// A Chromium for page.mjs, and a proxy before the server, so that it can be slow and be lost.
//
// With BANYAN_PAGE (a page.html.gz) the proxy answers with that page instead of the server's own.
import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const [target, executablePath] = process.argv.slice(2);
const upstream = new URL(target);
const ownPage = process.env.BANYAN_PAGE;

// ---- A server that can be lost ----------------------------------------------------------------

export const network = { lost: false, cutAfter: Infinity, locked: '' };

function forward(request, response) {
  if (network.lost) return request.socket.destroy();
  if (ownPage && request.url === '/') {
    response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' });
    return response.end(readFileSync(ownPage));
  }
  if (network.locked && request.url !== '/' && request.headers.authorization !== network.locked) {
    response.writeHead(401, { 'content-type': 'application/json' });
    return response.end('{"error": {"message": "an API key is needed"}}');
  }
  const { host, origin, ...headers } = request.headers;
  const { hostname, port } = upstream;
  const asked = { hostname, port, path: request.url, method: request.method, headers };
  const onward = http.request(asked, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    let bytes = 0;
    answer.on('data', (data) => {
      bytes += data.length;
      if (request.url !== '/v1/chat/completions' || bytes < network.cutAfter) {
        return response.write(data);
      }
      network.cutAfter = Infinity;
      network.lost = true;
      request.socket.destroy();
    });
    answer.on('end', () => response.end());
  });
  onward.on('error', () => request.socket.destroy());
  response.on('close', () => onward.destroy());
  return request.pipe(onward);
}

const proxy = http.createServer(forward);
await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
export const url = `http://127.0.0.1:${proxy.address().port}/`;

// ---- The browser ------------------------------------------------------------------------------

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
export const problems = [];

export async function open(options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(20000);
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(url)) {
      problems.push(`asks for ${request.url()}`);
    }
  });
  await page.goto(url);
  await page.waitForSelector('.lamp.ready');
  return page;
}

/** Everything that can be pressed or filled in has a name. */
export async function areNamed(page) {
  const unnamed = await page.evaluate(() =>
    [...document.querySelectorAll('button, a, input:not([hidden]), textarea, summary, canvas')]
      .filter((one) => !(one.getAttribute('aria-label') || one.textContent.trim() ||
        one.labels?.length || one.closest('label')))
      .map((one) => one.outerHTML.slice(0, 80)));
  assert.deepEqual(unnamed, []);
}

export async function fits(page, width) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= width, `${page.url()} is ${wide} wide on ${width}`);
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Does it in light and in dark. */
export async function inBoth(page, act) {
  for (const colorScheme of ['dark', 'light']) {
    await page.emulateMedia({ colorScheme });
    await act(colorScheme);
  }
}

/** What axe-core knows of WCAG and of good practice. */
export async function areAccessible(page) {
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(axe);
  await inBoth(page, async (scheme) => {
    const { violations } = await page.evaluate(() =>
      window.axe.run(document, { resultTypes: ['violations'] }));
    const told = violations.map(({ id, nodes }) =>
      [id, ...nodes.map(({ html, failureSummary }) => `${html.slice(0, 120)} ${failureSummary}`)]);
    assert.ok(told.length === 0, `${page.url()} in ${scheme}\n${told.flat().join('\n  ')}`);
  });
}

export async function close() {
  await browser.close();
  proxy.close();
  proxy.closeAllConnections();
}
