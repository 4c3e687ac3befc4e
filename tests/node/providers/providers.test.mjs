// The makers' own SDKs take the double for the real thing, and read from it what Ward reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { double, KEY } from "./double.mjs";

const limit = { timeout: 60_000 };

async function start(t) {
  const server = await double();
  t.after(() => server.close());
  return server;
}

const question = [{ role: "user", content: "What is here?" }];

/** What all four streams of tools say. */
const said = {
  text: "I look at both 🦀.",
  calls: [
    ["fs_list", {}],
    ["fs_read", { path: "README.md" }],
  ],
};

/** Each SDK, asked for a model: the text, the calls, and the tokens read and written. */
const sdks = {
  async anthropic(base, model, key = KEY) {
    const client = new Anthropic({ apiKey: key, baseURL: base, maxRetries: 0 });
    const message = await client.messages
      .stream({ model, max_tokens: 1000, messages: question })
      .finalMessage();
    return {
      text: message.content.filter((block) => block.type === "text").map((block) => block.text).join(""),
      calls: message.content.filter((block) => block.type === "tool_use").map((block) => [block.name, block.input]),
      cached: message.usage.cache_read_input_tokens,
      output: message.usage.output_tokens,
    };
  },

  async responses(base, model, key = KEY) {
    const client = new OpenAI({ apiKey: key, baseURL: `${base}/v1`, maxRetries: 0 });
    // Not `.stream()`: that helper gives up at events it does not know, and there is one.
    let response;
    for await (const event of await client.responses.create({ model, input: question, stream: true })) {
      if (event.type === "response.completed") response = event.response;
    }
    assert.ok(response, "the stream had no end");
    return {
      text: response.output
        .filter((item) => item.type === "message")
        .flatMap((item) => item.content.map((part) => part.text))
        .join(""),
      calls: response.output
        .filter((item) => item.type === "function_call")
        .map((item) => [item.name, JSON.parse(item.arguments)]),
      cached: response.usage.input_tokens_details.cached_tokens,
      output: response.usage.output_tokens,
    };
  },

  async chat(base, model, key = KEY) {
    const client = new OpenAI({ apiKey: key, baseURL: `${base}/v1`, maxRetries: 0 });
    const completion = await client.chat.completions
      .stream({ model, messages: question, stream_options: { include_usage: true } })
      .finalChatCompletion();
    const { message } = completion.choices[0];
    return {
      text: message.content,
      calls: (message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
      cached: completion.usage.prompt_tokens_details.cached_tokens,
      output: completion.usage.completion_tokens,
    };
  },

  async gemini(base, model, key = KEY) {
    const client = new GoogleGenAI({ apiKey: key, vertexai: false, httpOptions: { baseUrl: base } });
    const result = { text: "", calls: [] };
    for await (const chunk of await client.models.generateContentStream({ model, contents: "What is here?" })) {
      for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
        if (part.text !== undefined && !part.thought) result.text += part.text;
        if (part.functionCall) result.calls.push([part.functionCall.name, part.functionCall.args]);
      }
      const usage = chunk.usageMetadata;
      if (usage?.candidatesTokenCount !== undefined) {
        result.cached = usage.cachedContentTokenCount;
        result.output = usage.candidatesTokenCount + (usage.thoughtsTokenCount ?? 0);
      }
    }
    return result;
  },
};

for (const [wire, ask] of Object.entries(sdks)) {
  test(`${wire}: its SDK reads the streams as Ward does`, limit, async (t) => {
    const server = await start(t);
    assert.deepEqual(await ask(server.base, "any-tools"), { ...said, cached: 2000, output: 87 });
    assert.deepEqual(await ask(server.base, "any-text"), {
      text: "There are two files.",
      calls: [],
      cached: 2310,
      output: 9,
    });
    assert.deepEqual(await ask(server.base, "any-bytes"), { ...said, cached: 2000, output: 87 });
  });

  test(`${wire}: its SDK takes refusals for what they are`, limit, async (t) => {
    const server = await start(t);
    const status = async (model, key) => {
      try {
        await ask(server.base, model, key);
      } catch (error) {
        return error.status;
      }
      return "no error";
    };
    assert.equal(await status("any-tools", "wrong"), 401);
    assert.equal(await status("any-limited"), 429);
    assert.equal(await status("any-down"), wire === "anthropic" ? 529 : 503);
    assert.equal(await status("any-unknown"), 404);
  });

  test(`${wire}: its SDK fails where the answer fails in the middle`, limit, async (t) => {
    const server = await start(t);
    // The answer had begun: this is not about the request.
    const late = (error) => ![400, 401, 404, 429].includes(error.status);
    await assert.rejects(ask(server.base, "any-overloaded"), late);
    await assert.rejects(ask(server.base, "any-cut"), late);
  });
}
