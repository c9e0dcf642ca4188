/** Calls by name and key in workerd that outlive their request, or are made at once. */
import { Miniflare } from 'miniflare'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compatibilityDate } from '../../tools/build.ts'
import { bundled } from '../support/bundled.ts'
import { CROSS_REQUEST_IO } from '../support/cross-request-io.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
const logs: string[] = []
let miniflare: Miniflare
beforeAll(async () => {
  const env = Object.fromEntries(
    Object.entries(database.env).map(([name, value]) => [name, { type: 'text', value }]),
  )
  const manifest = await bundled('test/worker/doors-worker.ts')
  miniflare = new Miniflare({
    host: '127.0.0.1',
    port: 0,
    handleStructuredLogs: ({ message }: { message: string }) => void logs.push(message),
    workers: [{ config: { name: 'doors', compatibilityDate, env, manifest } }],
  } as unknown as ConstructorParameters<typeof Miniflare>[0])
  await miniflare.ready
}, 120_000)
afterAll(() => miniflare?.dispose())

const get = async (path: string) => (await miniflare.dispatchFetch(`http://app/${path}`)).text()

describe.each(['request', 'limits'])('The door %s', (door) => {
  test.each([
    ['is never awaited', 'forgotten'],
    ['is made after the response', 'later'],
  ])('charges a call that %s.', async (_, call) => {
    const key = `${door}-${call}`
    for (const _ of [1, 2, 3]) expect(await get(`${door}/${call}/${key}`)).toBe('ok')
    await expect.poll(() => get(`${door}/peek/${key}`), { timeout: 10_000 }).toBe('37')
  })

  test('admits exactly the limit of 64 concurrent calls.', async () => {
    expect(await get(`${door}/many/${door}-many`)).toBe('40')
  })
})

test('No call waits for the I/O of another request.', () => {
  expect(logs.join('\n')).not.toMatch(CROSS_REQUEST_IO)
})

test('Nothing looks at `process`, for which workerd would load 28 modules of Node.', async () => {
  expect(await get('process')).toBe('0')
})
