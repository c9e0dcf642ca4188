/**
 * Measures the time to the first event of a stream through the Worker: without a policy, with a policy, and with `cost.usage`. The
 * three take turns. Run it with: node --import ./dev/node-version.mjs bench/first-byte.ts
 */
import { buildStack, startStack } from '../dev/stack.ts'
import { startChatServer } from '../test/support/chat-server.ts'

const ROUNDS = 300
const cost = { usage: 'usage.total_tokens', otherwise: 20, max: 4000, cut: true }
const policy = { limit: 1_000_000_000, window: '1h' as const, key: 'global' as const }

await buildStack()
const chat = await startChatServer()
const stack = await startStack({
  config: {
    policies: [
      { name: 'plain', match: { path: '/plain' }, ...policy },
      { name: 'usage', match: { path: '/usage' }, ...policy, cost },
    ],
  },
  env: { ORIGIN: chat.url, BODIES: '{}' },
})

/** The time until the first event, ms. Reads the rest, so that the next request finds an idle machine. */
async function firstEvent(path: string): Promise<number> {
  const startedAt = performance.now()
  const response = await fetch(`${stack.worker.directUrl}${path}?tokens=30`)
  const reader = response.body!.getReader()
  await reader.read()
  const ms = performance.now() - startedAt
  while (!(await reader.read()).done);
  return ms
}

const times: Record<string, number[]> = { '/none': [], '/plain': [], '/usage': [] }
for (let round = -20; round < ROUNDS; round += 1) {
  for (const [path, list] of Object.entries(times)) {
    const ms = await firstEvent(path)
    if (round >= 0) list.push(ms)
  }
}
for (const [path, list] of Object.entries(times)) {
  const sorted = list.sort((one, other) => one - other)
  const at = (share: number) => sorted[Math.floor(sorted.length * share)]!.toFixed(2)
  console.log(`${path}: p50 ${at(0.5)} ms, p25 ${at(0.25)} ms, p75 ${at(0.75)} ms`)
}
await stack.stop()
await chat.close()
