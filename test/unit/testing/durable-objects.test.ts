/** startSluice with a Worker that counts in Durable Objects. */
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gatewayFiles } from '../../../cli/init/templates.ts'
import { type SluiceTest, startSluice } from '../../../src/testing/start.ts'

const source = (file: string) =>
  JSON.stringify(new URL(`../../../src/${file}`, import.meta.url).pathname)

const WORKER = `
import { createGateway } from ${source('index.ts')}
import { durableObjects } from ${source('stores/durable-objects/index.ts')}
export { SluiceSubject } from ${source('stores/durable-objects/index.ts')}
export default createGateway({
  store: durableObjects(),
  deadline: '10s',
  policies: [
    { name: 'daily', algorithm: 'fixed-window', limit: 3, window: '1d' },
    { name: 'strict', limit: 1, window: '1m', match: { path: '/strict' }, key: 'header:x-user', onMissingKey: 'skip' },
    { name: 'slots', algorithm: 'concurrency', limit: 1, window: '1m', match: { path: '/slots' } },
  ],
})
`

let folder: string
let sluice: SluiceTest
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'sluice-objects-')))
  const main = join(folder, 'worker.ts')
  await writeFile(main, WORKER)
  await writeFile(
    join(folder, 'wrangler.jsonc'),
    gatewayFiles('objects', true)
      ['wrangler.jsonc']!.replace('src/worker.ts', 'worker.ts')
      .replace(/^ *"build": .*$/m, ''),
  )
  sluice = await startSluice({ worker: { main } })
}, 120_000)
afterAll(async () => {
  await sluice?.stop()
  await rm(folder, { recursive: true })
})

async function statuses(count: number, path = '/', init = {}): Promise<number[]> {
  const all: number[] = []
  for (let n = 0; n < count; n++) {
    const response = await sluice.fetch(path, init)
    await response.text()
    all.push(response.status)
  }
  return all
}

test('A gateway counts in Durable Objects, and no Redis is started.', async () => {
  expect(sluice.env).toEqual({})
  await sluice.stopRedis()
  expect(await statuses(4)).toEqual([200, 200, 200, 429])
  expect(await statuses(1, '/', { ip: '192.0.2.7' })).toEqual([200])
})

test('The clock of a test moves the clock of the objects.', async () => {
  await sluice.advance('1d')
  expect(await statuses(4)).toEqual([200, 200, 200, 429])
})

test('The counts of a test can be deleted.', async () => {
  expect(await statuses(1)).toEqual([429])
  await sluice.flush()
  expect(await statuses(4)).toEqual([200, 200, 200, 429])
})

test('A request with several keys that one of them refuses charges none.', async () => {
  const headers = { 'x-user': 'alice' }
  const ip = '192.0.2.8'
  expect(await statuses(3, '/strict', { ip, headers })).toEqual([200, 429, 429])
  const response = await sluice.fetch('/', { ip })
  expect(response.headers.get('ratelimit')).toMatch(/^"daily";r=1;/)
})

test('A slot is released at the end of its response.', async () => {
  const ip = '192.0.2.9'
  expect(await statuses(2, '/slots', { ip })).toEqual([200, 200])
})
