// The page in a browser: node page.mjs BASE_URL CHROMIUM [FOLDER]. Prints "ok" when all went well;
// with FOLDER it leaves pictures of every view there.
import assert from 'node:assert';
import {
  areAccessible, areNamed, close, fits, inBoth, network, open, problems, url,
} from './page_browser.mjs';

const folder = process.argv[4];

const picture = async (page, name) => {
  if (!folder) return;
  await inBoth(page, (scheme) => page.screenshot({ path: `${folder}/${name}-${scheme}.png` }));
};

const written = (page) => page.waitForFunction(() =>
  document.querySelector('.message.assistant') && !document.querySelector('.answer.live'));

/** Does what makes the page ask for an answer, and waits until that is drawn. */
async function asking(page, act) {
  const asked = page.waitForRequest(/chat\/completions/);
  await act();
  await asked;
  await page.evaluate(() => new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(resolve));
  }));
}

async function ask(page, text) {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await asking(page, () => page.keyboard.press('Enter'));
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
  await asking(page, () => page.keyboard.press('Enter'));
  await written(page);
  assert.notEqual(await lastAnswer(page), first);
  await page.getByLabel('The branch before').first().click();
  await page.waitForFunction((text) =>
    [...document.querySelectorAll('.answer')].at(-1).innerText === text, first);
  // Probabilities, and a branch where another token is taken.
  await page.getByLabel('Show tokens by probability').click();
  await page.locator('.token').nth(12).hover();
  await page.waitForSelector('.popover .choice');
  await picture(page, 'probabilities');
  await asking(page, () => page.locator('.choice:not(.own)').first().click());
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
  // Unless it has tried by itself meanwhile.
  await page.evaluate(() => document.querySelector('.banner button')?.click());
  await written(page);
  assert.equal(await lastAnswer(page), whole);
}

async function unlocks(page) {
  network.locked = 'Bearer secret';
  const kept = await page.locator('.chat-item').count();
  await page.reload();
  await page.locator('.banner').getByLabel('API key').fill('secret');
  await picture(page, 'locked');
  await page.getByText('Unlock').click();
  await page.waitForSelector('.lamp.ready');
  network.locked = '';
  assert.equal(await page.locator('.chat-item').count(), kept);
}

const LONG = 10000; // messages

/** Leaves a conversation of LONG messages in the browser, as the page keeps them. */
async function fill(page) {
  await page.evaluate(async (count) => {
    const nodes = { 0: { id: 0, parent: null, role: 'root', children: [1], chosen: 0 } };
    for (let id = 1; id <= count; ++id) {
      const content = `Message ${id}. ${'One more line.\n\n'.repeat(id % 7)}`;
      nodes[id] = {
        id, parent: id - 1, role: id % 2 ? 'user' : 'assistant', content, reasoning: '', calls: [],
        state: 'done', children: id < count ? [id + 1] : [], chosen: 0,
      };
    }
    const opened = indexedDB.open('banyan', 1);
    await new Promise((resolve) => { opened.onsuccess = resolve; });
    const write = opened.result.transaction('chats', 'readwrite');
    write.objectStore('chats').put(
      { id: 'long', title: 'Long', system: null, updated: Date.now(), next: count + 1, nodes });
    await new Promise((resolve) => { write.oncomplete = resolve; });
    opened.result.close();
  }, LONG);
}

/** The first message in sight, and where it is. */
const inSight = (page) => page.evaluate(() => {
  const box = document.querySelector('.transcript').getBoundingClientRect();
  for (const one of document.querySelectorAll('.message')) {
    const { top, bottom } = one.getBoundingClientRect();
    if (bottom > box.top + 1) return { place: Number(one.dataset.place), top: Math.round(top) };
  }
  return null;
});

async function scrollTo(page, part) {
  await page.evaluate((share) => {
    const box = document.querySelector('.transcript');
    box.scrollTop = share * box.scrollHeight;
  }, part);
  await page.waitForTimeout(400);
  assert.ok(await page.locator('.message').count() < 200);
  const { place } = await inSight(page);
  assert.ok(Math.abs(place / LONG - part) < 0.02, `${place} at ${part}`);
}

/** Of thousands of messages few are in the document, and what is read stays in its place. */
async function scrolls(page) {
  await fill(page);
  await page.reload();
  await page.getByText('Long', { exact: true }).click();
  await page.getByText(`Message ${LONG}.`).waitFor();
  await areAccessible(page);
  for (const part of [0.5, 0.25, 0]) await scrollTo(page, part);
  await page.getByText(/^Message 1\./).waitFor();
  await scrollTo(page, 0.5);
  await page.locator('.transcript').hover();
  for (let i = 0; i < 30; ++i) await page.mouse.wheel(0, -700);
  await page.waitForTimeout(300);
  const seen = await inSight(page);
  await page.waitForTimeout(1000);
  assert.deepEqual(await inSight(page), seen);
  // What is begun outlives being out of sight.
  const { place } = seen;
  const user = page.locator(`.message[data-place="${place + 2 - (place % 2)}"]`);
  await user.getByLabel('Edit and branch').click();
  await page.getByLabel('Edit the message').fill('A draft');
  await page.getByLabel('Message', { exact: true }).focus();
  await page.getByLabel('To the end').click();
  await page.getByText(`Message ${LONG}.`).waitFor();
  assert.equal(await page.getByLabel('Edit the message').count(), 0);
  await page.evaluate(() => { document.querySelector('.transcript').scrollTop /= 2; });
  await picture(page, 'long');
  await page.getByLabel('To the end').click();
  await ask(page, 'And now?');
  await page.waitForFunction((count) =>
    document.querySelector(`.message[data-place="${count + 1}"]`), LONG);
  await page.keyboard.press('Escape');
  await written(page);
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

const page = await open({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
await picture(page, 'welcome');
await areNamed(page);
for (const step of [chats, stops, resumes, unlocks, scrolls, plays, shows]) {
  await step(page).catch(async (error) => {
    await picture(page, 'failed');
    throw error;
  });
  await areNamed(page);
  await areAccessible(page);
  await fits(page, 1280);
}
await page.close();

const phone = await open(
  { viewport: { width: 390, height: 844 }, colorScheme: 'dark', hasTouch: true });
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
  await areAccessible(phone);
  await picture(phone, `phone-${view}`);
}
await close();
assert.deepEqual(problems, []);
console.log('ok');
