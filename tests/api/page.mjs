// The page in a browser: node page.mjs BASE_URL CHROMIUM [FOLDER]. Prints "ok" when all went well;
// with FOLDER it leaves pictures of every view there. The server speaks through a proxy in this
// program, so that it can be slow and be lost.
import assert from 'node:assert';
import http from 'node:http';
import { chromium } from 'playwright-core';

const [target, executablePath, folder] = process.argv.slice(2);
const upstream = new URL(target);

// ---- A server that can be lost ----------------------------------------------------------------

const network = { lost: false, cutAfter: Infinity, locked: '' };

function forward(request, response) {
  if (network.lost) return request.socket.destroy();
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
const url = `http://127.0.0.1:${proxy.address().port}/`;

// ---- What people do ---------------------------------------------------------------------------

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const problems = [];

async function open(options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(60000);
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

const picture = async (page, name) => {
  if (folder) await page.screenshot({ path: `${folder}/${name}.png` });
};

const written = (page) => page.waitForFunction(() =>
  document.querySelector('.message.assistant') && !document.querySelector('.answer.live'));

async function ask(page, text) {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.answer.live');
}

const lastAnswer = (page) => page.locator('.answer').last().innerText();

async function chats(page) {
  await page.locator('#n-temperature').fill('0');
  await page.locator('#n-max_tokens').fill('40');
  await ask(page, 'Tell me a story about a fox named Ruby.');
  await written(page);
  const first = await lastAnswer(page);
  assert.match(first, /fox/);
  assert.match(await page.locator('.figures').last().innerText(), /tokens\/s.*prompt/);
  await picture(page, 'chat');
  // Edited, it is a branch of its own, and the first is still there.
  await page.getByLabel('Edit and branch').first().click();
  await page.getByLabel('Edit the message').fill('Tell me a story about a cat named Tom.');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.answer.live');
  await written(page);
  assert.notEqual(await lastAnswer(page), first);
  await page.getByLabel('The branch before').first().click();
  assert.equal(await lastAnswer(page), first);
  // Probabilities, and a branch where another token is taken.
  await page.getByLabel('Show tokens by probability').click();
  await page.locator('.token').nth(12).hover();
  await page.waitForSelector('.popover .choice');
  await picture(page, 'probabilities');
  await page.locator('.choice:not(.own)').first().click();
  await page.waitForSelector('.branches');
  await written(page);
  assert.notEqual(await lastAnswer(page), first);
  // It outlives the page.
  await page.waitForTimeout(1200);
  await page.reload();
  await page.locator('.chat-item').first().click();
  await page.waitForSelector('.message.assistant');
}

async function stops(page) {
  await page.keyboard.press('Control+k');
  await page.locator('#n-max_tokens').fill('3000');
  await ask(page, 'Tell me a long story. '.repeat(40));
  await page.keyboard.press('Escape');
  await written(page);
  await page.locator('#n-max_tokens').fill('40');
}

async function resumes(page) {
  await page.keyboard.press('Control+k');
  await ask(page, 'Tell me a story about a fox named Ruby.');
  await written(page);
  const whole = await lastAnswer(page);
  await page.keyboard.press('Control+k');
  network.cutAfter = 6000;
  await ask(page, 'Tell me a story about a fox named Ruby.');
  await page.waitForSelector('.banner');
  assert.match(await page.locator('.banner').innerText(), /cannot be reached/);
  assert.match(await page.locator('.status').last().innerText(), /goes on once the server is back/);
  await picture(page, 'lost');
  network.lost = false;
  await page.getByText('Try now').click();
  await written(page);
  assert.equal(await lastAnswer(page), whole);
}

async function unlocks(page) {
  network.locked = 'Bearer secret';
  await page.reload();
  await page.locator('.banner').getByLabel('API key').fill('secret');
  await picture(page, 'locked');
  await page.getByText('Unlock').click();
  await page.waitForSelector('.lamp.ready');
  network.locked = '';
}

async function plays(page) {
  await page.goto(`${url}#playground`);
  await page.getByText('Run', { exact: true }).click();
  await page.waitForSelector('.verdict.good');
  assert.equal(JSON.parse((await page.locator('.tokens').innerText()).replace('■', '')).age, 34);
  await picture(page, 'playground');
  await page.locator('.choice-row label', { hasText: 'Regex' }).click();
  await page.getByRole('textbox', { name: 'Regex' }).fill('(((');
  await page.getByText('Run', { exact: true }).click();
  await page.waitForSelector('.verdict.problem');
  await page.locator('.choice-row label', { hasText: 'Program' }).click();
  await page.getByText('Run', { exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('.step.gen.done').length === 5);
  await picture(page, 'program');
}

async function shows(page) {
  await page.goto(`${url}#cache`);
  await page.locator('.branch').first().waitFor();
  await page.locator('.branch').first().focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('.detail');
  await page.waitForSelector('.experts canvas');
  await picture(page, 'cache');
}

/** Everything that can be pressed or filled in has a name. */
async function areNamed(page) {
  const unnamed = await page.evaluate(() =>
    [...document.querySelectorAll('button, a, input:not([hidden]), textarea, summary, canvas')]
      .filter((one) => !(one.getAttribute('aria-label') || one.textContent.trim() ||
        one.labels?.length || one.closest('label')))
      .map((one) => one.outerHTML.slice(0, 80)));
  assert.deepEqual(unnamed, []);
}

async function fits(page, width) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= width, `${page.url()} is ${wide} wide on ${width}`);
}

const page = await open({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
await picture(page, 'welcome');
await areNamed(page);
for (const step of [chats, stops, resumes, unlocks, plays, shows]) {
  await step(page);
  await areNamed(page);
  await fits(page, 1280);
}
await page.close();

const phone = await open({ viewport: { width: 390, height: 844 }, colorScheme: 'dark', hasTouch: true });
await picture(phone, 'phone-welcome');
await phone.evaluate(() => localStorage.setItem('banyan.settings', '{"max_tokens": "40"}'));
await phone.reload();
await ask(phone, 'Tell me a story about a fox named Ruby.');
await written(phone);
await picture(phone, 'phone-chat');
await phone.getByLabel('Settings', { exact: true }).click();
await picture(phone, 'phone-settings');
await phone.getByLabel('Close settings').click();
await phone.getByLabel('Menu', { exact: true }).click();
await phone.waitForTimeout(300);
await picture(phone, 'phone-menu');
await phone.keyboard.press('Escape');
for (const view of ['chat', 'playground', 'cache']) {
  await phone.goto(`${url}#${view}`);
  await phone.waitForTimeout(300);
  await fits(phone, 390);
  await picture(phone, `phone-${view}`);
}
await browser.close();
proxy.close();
proxy.closeAllConnections();
assert.deepEqual(problems, []);
console.log('ok');
