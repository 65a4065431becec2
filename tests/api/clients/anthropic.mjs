// The @anthropic-ai/sdk npm client: node anthropic.mjs BASE_URL. Prints "ok" when all went well.
import assert from 'node:assert';
import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: process.argv[2], apiKey: 'none', maxRetries: 0 });
const ask = { model: 'stories', max_tokens: 10, temperature: 0,
              messages: [{ role: 'user', content: 'Once upon a time' }] };

const whole = await client.messages.create(ask);
assert.equal(whole.usage.output_tokens, 10);
assert.equal(whole.stop_reason, 'max_tokens');
const stream = client.messages.stream(ask);
let text = '';
stream.on('text', (piece) => { text += piece; });
const last = await stream.finalMessage();
assert.equal(text, whole.content[0].text);
assert.deepEqual(last.usage.output_tokens, 10);
const counted = await client.messages.countTokens({ model: 'stories', messages: ask.messages });
assert.equal(counted.input_tokens, whole.usage.input_tokens + whole.usage.cache_read_input_tokens);
await assert.rejects(client.messages.create({ ...ask, max_tokens: 0 }),
                     (error) => error.status === 400);
console.log('ok');
