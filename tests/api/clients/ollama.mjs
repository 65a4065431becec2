// The ollama npm client: node ollama.mjs BASE_URL. Prints "ok" when all went well.
import assert from 'node:assert';
import { Ollama } from 'ollama';

const client = new Ollama({ host: process.argv[2] });
const options = { temperature: 0, num_predict: 10 };
const messages = [{ role: 'user', content: 'Once upon a time' }];

const listed = await client.list();
assert.equal(listed.models[0].model, 'stories');
const whole = await client.chat({ model: 'stories', messages, options });
assert.equal(whole.eval_count, 10);
let text = '';
for await (const part of await client.chat({ model: 'stories', messages, options, stream: true })) {
  text += part.message.content;
}
assert.equal(text, whole.message.content);
const raw = await client.generate({ model: 'stories', prompt: 'Once', raw: true, options });
assert.equal(raw.done_reason, 'length');
const chosen = await client.chat({ model: 'stories', messages, options,
                                   format: { enum: ['yes', 'no'] } });
assert.ok(['"yes"', '"no"'].includes(chosen.message.content));
await assert.rejects(client.embed({ model: 'stories', input: 'a' }), /not supported/);
console.log('ok');
