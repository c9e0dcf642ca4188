/** The guides of outbound calls with the clients of OpenAI and GitHub, from the packed package: their code runs as it is written. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startBridge } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { borrowRedis } from '../support/borrow-redis.ts'
import { blocksOf, pageAt } from '../support/pages.ts'
import { installConsumer, runIn } from './support/consumer.ts'
import { startProviders } from './support/providers.ts'

const blocks = (guide: string) =>
  blocksOf(pageAt(`docs/guides/${guide}.md`))
    .filter(({ language }) => language === 'ts')
    .map(({ code }) => code)
const [openai, busy] = blocks('keep-to-an-llm-providers-limits')
const [github] = blocks('keep-to-githubs-limits')

type Providers = Awaited<ReturnType<typeof startProviders>>
let folder: string
/** What the origin has seen: of the two processes that call at once, and of the one after them. */
let arrivals: Providers['arrivals']
let later: Providers['arrivals']
// biome-ignore lint/suspicious/noExplicitAny: each test knows its part
let together: any[]
// biome-ignore lint/suspicious/noExplicitAny: each test knows its part
let alone: any

beforeAll(async () => {
  folder = await installConsumer({
    packages: ['openai@7.57.0', '@octokit/core@7.0.8', 'typescript@7.0.2', '@types/node@24.19.2'],
    files: {
      'package.json': '{ "type": "module" }',
      'openai.ts': openai!,
      'busy.ts': busy!,
      'github.ts': github!,
      'main.mjs': await readFile(new URL('support/clients.mjs', import.meta.url), 'utf8'),
      'tsconfig.json': JSON.stringify({
        compilerOptions: {
          ...{ target: 'es2024', module: 'nodenext', strict: true, noEmit: true },
          ...{ exactOptionalPropertyTypes: true, skipLibCheck: true, types: ['node'] },
        },
        files: ['openai.ts', 'busy.ts', 'github.ts'],
      }),
    },
  })
  ;[together, arrivals] = await run('together', 2)
  ;[[alone], later] = await run('alone', 1)
}, 300_000)
afterAll(() => folder && rm(folder, { recursive: true, force: true }))

/** Runs processes with an empty database and accounts without use. Returns what they have seen, and what the origin has. */
async function run(what: string, processes: number) {
  const [redis, providers] = await Promise.all([borrowRedis(), startProviders()])
  const bridge = await startBridge({ redis: redis.url, token: 'a-local-token' })
  const variables = {
    UPSTASH_REDIS_REST_URL: bridge.url,
    UPSTASH_REDIS_REST_TOKEN: bridge.token,
    OPENAI_BASE_URL: `${providers.url}/v1`,
    OPENAI_API_KEY: 'a-key',
    GITHUB_TOKEN: 'a-token',
    ORIGIN: providers.url,
  }
  async function runOne() {
    const output = await runIn(folder, process.execPath, ['main.mjs', what], variables)
    return JSON.parse(output.trim().split('\n').at(-1)!)
  }
  try {
    const seen = await Promise.all(Array.from({ length: processes }, runOne))
    return [seen, providers.arrivals] as const
  } finally {
    providers.close()
    await bridge.close()
    await redis.stop()
  }
}

/** The answers at a path, and how long after the first one the last one was. */
function at(path: string, among = arrivals) {
  const found = among.filter((arrival) => arrival.path === path)
  const times = found.map((arrival) => arrival.at)
  return {
    statuses: found.map(({ status }) => status),
    spanMs: Math.max(...times) - Math.min(...times),
  }
}

test('The code of both guides compiles with the types of the clients.', async () => {
  const tsc = join(folder, 'node_modules/typescript/bin/tsc')
  expect(await runIn(folder, process.execPath, [tsc, '-p', '.'])).toBe('')
})

test('The same calls at once, without turns, get 429 and 403 from this origin.', async () => {
  const providers = await startProviders()
  try {
    const statuses = (count: number, path: string, body: object) =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const init = { method: 'POST', body: JSON.stringify(body) }
          const response = await fetch(providers.url + path, init)
          await response.text()
          return response.status
        }),
      )
    const messages = [{ role: 'user', content: 'short' }]
    expect(await statuses(20, '/v1/chat/completions', { messages })).toContain(429)
    expect(await statuses(8, '/repos/a/b/issues', {})).toContain(403)
  } finally {
    providers.close()
  }
})

test('Two processes with the client of OpenAI wait for their turns: 20 calls, and no answer is 429.', () => {
  const { statuses, spanMs } = at('/v1/chat/completions')
  expect(statuses).toEqual(Array(20).fill(200))
  // 20 calls of 1,500 tokens: 20,000 at once, and the others at 200,000 a minute.
  expect(spanMs).toBeGreaterThan(2500)
  for (const { answers } of together) expect(answers).toEqual(Array(10).fill('Hello.'))
})

test('Two processes with Octokit wait for their turns: 28 calls, and no answer is 403.', () => {
  expect(at('/repos/a/b/issues/1').statuses).toEqual(Array(20).fill(200))
  const { statuses, spanMs } = at('/repos/a/b/issues')
  expect(statuses).toEqual(Array(8).fill(200))
  // 8 calls that create content: 5 at once, and one each 750 ms.
  expect(spanMs).toBeGreaterThan(2000)
  for (const { statuses } of together) expect(statuses).toEqual(Array(14).fill(200))
})

test('A stream of OpenAI arrives while it is sent.', () => {
  expect(alone.parts).toEqual(['Hel', 'lo.', { total_tokens: 1500 }])
})

test('Over `wait` the client of OpenAI throws at once, with the typed error as its cause.', () => {
  expect(at('/v1/chat/completions', later).statuses).toEqual(Array(13).fill(200))
  expect(alone.overWait.error).toMatchObject({ isTyped: true, code: 'wait' })
  expect(alone.overWait.error.tookMs).toBeLessThan(5000)
  // The wait of 30 s counts from the begin of the call.
  expect(alone.overWait.error.retryAfterMs).toBeGreaterThan(25_000)
  expect(alone.overWait.answer).toEqual({
    status: 503,
    seconds: Math.ceil(alone.overWait.error.retryAfterMs / 1000),
  })
})

test("Octokit sends a call again after GitHub's limit, and over `wait` throws at once.", () => {
  const { status, refused, next } = alone.afterOthers
  expect(status).toBe(200)
  expect(at('/repos/a/b/issues/1', later).statuses).toEqual([403, 200, 403])
  expect(refused).toMatchObject({ status: 403, isTyped: false })
  expect(next).toMatchObject({ isTyped: true, code: 'wait' })
  expect(next.retryAfterMs).toBeGreaterThan(3_500_000)
  expect(next.tookMs).toBeLessThan(5000)
})
