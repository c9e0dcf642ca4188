/** Any Redis from the packed package, without a bridge: by `REDIS_URL`, and with the client of an app (`sluice/redis`). */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { borrowRedis } from '../support/borrow-redis.ts'
import { blocksOf, pageAt, read } from '../support/pages.ts'
import { installConsumer, runIn, startIn } from './support/consumer.ts'
import { listening } from './support/listening.ts'

const guide = blocksOf(pageAt('docs/guides/node.md')).find(({ name }) => name === 'express-redis')!

/** A program that limits three calls with each of the clients, of an early and of the newest version, and ends: it closes the clients itself. */
const calls = `import { Redis } from 'ioredis'
import { Redis as OldRedis } from 'ioredis-5'
import { createClient } from 'redis'
import { createClient as createOldClient } from 'redis-5'
import { limits } from 'sluice/limits'
import { redis } from 'sluice/redis'

const url = process.env.REDIS_URL!
const [node, oldNode] = [createClient({ url }), createOldClient({ url })]
await Promise.all([node.connect(), oldNode.connect()])
const [io, oldIo] = [new Redis(url), new OldRedis(url)]
const seen: boolean[][] = []
for (const client of [node, oldNode, io, oldIo]) {
  const quota = limits(
    { calls: { limit: 2, window: '1h', deadline: '10s' } },
    { store: redis(client), namespace: \`n-\${process.argv[2]}-\${seen.length}\` },
  )
  const all: boolean[] = []
  for (let count = 0; count < 3; count++) all.push((await quota.limit('calls', 'ann')).allowed)
  seen.push(all)
}
for (const client of [node, oldNode]) await client.close()
for (const client of [io, oldIo]) await client.quit()
console.log(JSON.stringify(seen))
if (process.argv[2] === 'deno') process.exit() // otherwise Deno waits for AbortSignal.timeout
`

/** A program that names no store, and ends by itself. */
const unconnected = `import { createSluice } from 'sluice'
import { limits } from 'sluice/limits'

const namespace = \`url-\${process.argv[2]}\`
const terms = { limit: 2, window: '1h', deadline: '10s' } as const
const quota = limits({ calls: terms }, { namespace })
const sluice = createSluice({ namespace, policies: [{ ...terms, name: 'calls', key: 'header:x-key' }] })
const seen: string[] = []
for (const [one, key] of [[quota, 'ann'], [sluice, 'ben']] as const)
  for (let count = 0; count < 3; count++) seen.push((await one.limit('calls', key)).reason)
console.log(JSON.stringify(seen))
`

let folder: string
let redis: Awaited<ReturnType<typeof borrowRedis>>
beforeAll(async () => {
  redis = await borrowRedis()
  folder = await installConsumer({
    packages: [
      ...['express@5.3.0', 'redis@6.3.1', 'ioredis@6.0.0', 'bun@1.4.5', 'deno@2.9.6'],
      ...['redis-5@npm:redis@5.0.0', 'ioredis-5@npm:ioredis@5.3.0'], // early versions
      ...['typescript@7.0.2', '@types/express@5.0.6', '@types/node@24.19.2'],
    ],
    files: {
      'package.json': '{ "type": "module", "allowScripts": { "bun": true, "deno": true } }',
      'server.ts': guide.code,
      'calls.ts': calls,
      'unconnected.ts': unconnected,
      'tsconfig.json': JSON.stringify({
        compilerOptions: {
          ...{ target: 'es2024', module: 'nodenext', strict: true, noEmit: true, types: ['node'] },
          skipLibCheck: true,
        },
        files: ['server.ts', 'calls.ts', 'unconnected.ts'],
      }),
    },
  })
}, 300_000)
afterAll(async () => {
  await redis?.stop()
  if (folder) await rm(folder, { recursive: true, force: true })
})
const bin = (name: string) => join(folder, 'node_modules/.bin', name)

test('The code of the guide, and clients of both libraries, compile.', async () => {
  expect(await runIn(folder, bin('tsc'), ['-p', '.'])).toBe('')
})

test('The Express app of the guide refuses the request after the hundredth, with a local Redis and no bridge.', async () => {
  const port = await freePort()
  const variables = { REDIS_URL: redis.url, PORT: `${port}`, SLUICE_SECRET: 'a-secret' }
  const server = startIn(folder, process.execPath, ['server.ts'], variables)
  onTestFinished(server.stop)
  await listening(port, server)
  const statuses: number[] = []
  for (let sent = 0; sent < 101; sent++) {
    statuses.push((await fetch(`http://127.0.0.1:${port}/`)).status)
  }
  expect(statuses).toEqual([...Array(100).fill(200), 429])
})

const NODE = ['Node', () => process.execPath, []] as const
const BUN = ['Bun', () => bin('bun'), []] as const
const denoWith = (...permissions: string[]) =>
  [
    'Deno',
    () => bin('deno'),
    ['run', '--node-modules-dir=manual', '--allow-net', ...permissions],
  ] as const

test.each([NODE, BUN, denoWith(/--allow-env=\S+/.exec(read('docs/guides/deno.md'))![0])])(
  'REDIS_URL alone limits calls on %s, and the program ends by itself, also if Redis is away.',
  async (name, program, args) => {
    const run = async (url: string) => {
      const variables = { REDIS_URL: url, SLUICE_SECRET: 'a-secret' }
      const command = [...args, 'unconnected.ts', name.toLowerCase()]
      return JSON.parse(await runIn(folder, program(), command, variables))
    }
    const three = ['within-limit', 'within-limit', 'limited']
    expect(await run(redis.url)).toEqual([...three, ...three])
    expect(await run(`redis://127.0.0.1:${await freePort()}`)).toEqual(Array(6).fill('store-error'))
  },
)

// Deno with the permissions that its guide names, and those of the clients.
test.each([NODE, BUN, denoWith('--allow-env', '--allow-sys', '--allow-read')])(
  'Clients of redis and of ioredis limit calls on %s.',
  async (name, program, args) => {
    const variables = { REDIS_URL: redis.url, SLUICE_SECRET: 'a-secret' }
    const command = [...args, 'calls.ts', name.toLowerCase()]
    const seen = JSON.parse(await runIn(folder, program(), command, variables))
    expect(seen).toEqual(Array(4).fill([true, true, false]))
  },
)
