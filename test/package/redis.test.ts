/** `sluice/redis` from the packed package: an app with its own client of Redis, and no bridge. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from 'sluice-upstash-bridge'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { borrowRedis } from '../support/borrow-redis.ts'
import { blocksOf, pageAt } from '../support/pages.ts'
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
      'tsconfig.json': JSON.stringify({
        compilerOptions: {
          ...{ target: 'es2024', module: 'nodenext', strict: true, noEmit: true, types: ['node'] },
          skipLibCheck: true,
        },
        files: ['server.ts', 'calls.ts'],
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

/** Deno with the permissions that its guide names, and that of the clients. */
const deno = [
  'run',
  '--node-modules-dir=manual',
  '--allow-net',
  '--allow-env',
  '--allow-sys',
  '--allow-read',
]
test.each([
  ['Node', () => process.execPath, []],
  ['Bun', () => bin('bun'), []],
  ['Deno', () => bin('deno'), deno],
])('Clients of redis and of ioredis limit calls on %s.', async (name, program, args) => {
  const variables = { REDIS_URL: redis.url, SLUICE_SECRET: 'a-secret' }
  const command = [...args, 'calls.ts', name.toLowerCase()]
  const seen = JSON.parse(await runIn(folder, program(), command, variables))
  expect(seen).toEqual(Array(4).fill([true, true, false]))
})
