// The openai npm client: node client.mjs BASE_URL. Prints "ok" when all went well.
import assert from 'node:assert';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: process.argv[2] + '/v1', apiKey: 'none', maxRetries: 0 });
const messages = [{ role: 'user', content: 'Once upon a time' }];
const chat = { model: 'stories', messages, temperature: 0, max_tokens: 10 };

const models = await client.models.list();
assert.equal(models.data[0].id, 'stories');
const whole = await client.chat.completions.create(chat);
assert.equal(whole.usage.completion_tokens, 10);
let text = '';
const stream = await client.chat.completions.create({ ...chat, stream: true });
for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? '';
assert.equal(text, whole.choices[0].message.content);
const completion = await client.completions.create(
    { model: 'stories', prompt: 'Once', max_tokens: 4, temperature: 0, logprobs: 1 });
assert.equal(completion.choices[0].logprobs.tokens.length, 4);
await assert.rejects(client.completions.create({ model: 'stories', prompt: 'a', temperature: 9999 }),
                     (error) => error.status === 400 && error.param === 'temperature');
console.log('ok');
