// Asks a served roomlore with the npm clients of OpenAI's protocol and prints what they understood.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { z } from "zod";

const [baseURL] = process.argv.slice(2);
const told = {};

const openai = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "我对坚果过敏。 I am allergic to nuts 🥜" }];
const whole = await openai.chat.completions.create({ model: "chat", messages, user: "ann" });
told.openai = { text: whole.choices[0].message.content, tokens: whole.usage.total_tokens };
told.models = (await openai.models.list()).data.map((one) => one.id);
const asked = [{ role: "user", content: "Which cake may I eat?" }];
const stream = await openai.chat.completions.create({ model: "chat", messages: asked, user: "ann", stream: true });
told.openaiStream = "";
for await (const chunk of stream) told.openaiStream += chunk.choices[0]?.delta?.content ?? "";
told.openaiError = await openai.chat.completions
  .create({ model: "nobody", messages: asked })
  .catch((error) => ({ status: error.status, named: error instanceof OpenAI.NotFoundError }));

const vercel = createOpenAICompatible({
  name: "roomlore",
  baseURL,
  apiKey: "none",
  headers: { "X-Roomlore-Room": "hut", "X-Roomlore-Speaker": "bob" },
});
const model = vercel("chat");
const generated = await generateText({ model, prompt: "Hello from Bob", maxRetries: 0 });
told.vercel = { text: generated.text, finish: generated.finishReason };
const streamed = streamText({ model, prompt: "Tell me more", maxRetries: 0 });
told.vercelStream = "";
for await (const part of streamed.textStream) told.vercelStream += part;
const weather = tool({
  description: "The weather of a city",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
});
const withTool = await generateText({
  model,
  prompt: "What is the weather in Rome?",
  tools: { weather },
  stopWhen: stepCountIs(3),
  maxRetries: 0,
});
told.vercelTool = { text: withTool.text, results: withTool.steps.flatMap((step) => step.toolResults.map((one) => one.output)) };
process.stdout.write(JSON.stringify(told));
