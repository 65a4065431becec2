// zod's schemas through the openai npm client: node zod.mjs BASE_URL. Prints "ok" when all went
// well. What parse() gives back has been checked by zod itself.
import assert from 'node:assert';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';

const client = new OpenAI({ baseURL: process.argv[2] + '/v1', apiKey: 'none', maxRetries: 0 });
const chat = {
  model: 'stories', messages: [{ role: 'user', content: 'Once' }], temperature: 1, max_tokens: 300,
};

const Step = z.object({ kind: z.enum(['walk', 'run']), metres: z.number().int() });
const Story = z.object({
  hero: z.enum(['Lily', 'Tom']),
  happy: z.boolean(),
  friend: z.union([z.literal('cat'), z.null()]),
  first: Step,
  steps: z.array(Step).max(2),
});
const answer = await client.chat.completions.parse(
    { ...chat, seed: 3, response_format: zodResponseFormat(Story, 'story') });
assert.equal(answer.choices[0].finish_reason, 'stop');
assert.ok(['Lily', 'Tom'].includes(answer.choices[0].message.parsed.hero));
assert.equal(Story.safeParse(answer.choices[0].message.parsed).success, true);

const called = await client.chat.completions.parse({
  ...chat, seed: 4, tools: [zodFunction({ name: 'move', parameters: Step })],
  tool_choice: 'required', parallel_tool_calls: false,
});
const [call] = called.choices[0].message.tool_calls;
assert.equal(call.function.name, 'move');
assert.equal(Step.safeParse(call.function.parsed_arguments).success, true);
console.log('ok');
