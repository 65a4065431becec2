// Vercel's `ai` with @ai-sdk/openai: node ai.mjs BASE_URL. Prints "ok" when all went well.
import assert from 'node:assert';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText } from 'ai';

const provider = createOpenAI({ baseURL: process.argv[2] + '/v1', apiKey: 'none' });
for (const model of [provider.chat('stories'), provider.completion('stories'),
                     provider.responses('stories')]) {
  const ask = { model, prompt: 'Once upon a time', temperature: 0, maxOutputTokens: 16,
                maxRetries: 0 };
  const whole = await generateText(ask);
  assert.equal(whole.usage.outputTokens, 16);
  let text = '';
  for await (const piece of streamText(ask).textStream) text += piece;
  assert.equal(text, whole.text);
}
console.log('ok');
