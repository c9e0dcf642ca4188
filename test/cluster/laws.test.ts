/** Laws of a Redis Cluster: its slots decide like one database, and never exceed a limit. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { recordOf } from '../../src/core/connection/upstash/script.ts'
import { limits } from '../../src/limits/limits.ts'
import { crc16, slotOf } from '../../src/stores/cluster/cluster.ts'
import { redis } from '../../src/stores/redis.ts'
import { anyCharacter } from '../support/any-text.ts'
import { useCluster } from '../support/cluster.ts'
import { property } from '../support/law.ts'
import { clusterClients, type OpenClient } from '../support/redis-clients.ts'
import { splitLaws } from '../support/split-laws.ts'
import { newSubject } from '../support/subjects.ts'

vi.setConfig({ hookTimeout: 60_000 })

const { running, newStore } = useCluster()

describe('the slot of a subject', () => {
  const keySlot = (key: Buffer | string) =>
    running.admin.ask(0, 'CLUSTER', 'KEYSLOT', key as string)

  property(
    'The CRC of any bytes is that of Redis.',
    fc.uint8Array({ minLength: 1, maxLength: 64 }),
    async (bytes) => {
      fc.pre(!bytes.includes(0x7b)) // without `{` Redis hashes the whole key
      expect(crc16(bytes) % 16_384).toBe(await keySlot(Buffer.from(bytes)))
    },
    1_000,
  )

  property(
    'All keys of a subject are in its slot.',
    fc.record({
      subject: fc.string({ unit: anyCharacter, minLength: 1, maxLength: 40 }),
      namespace: fc.option(fc.constantFrom('shop', 'a-1'), { nil: undefined }),
      rest: fc.constantFrom('', ':log:t', ':slots:t'),
    }),
    async ({ subject, namespace, rest }) => {
      fc.pre(!subject.startsWith('}')) // a subject begins with a name
      expect(slotOf(subject)).toBe(await keySlot(recordOf(subject, namespace) + rest))
    },
    1_000,
  )
})

splitLaws(() => newStore())

describe.each(Object.entries(clusterClients))('through a client of %s', (_, open) => {
  let client: OpenClient
  beforeAll(async () => {
    client = open(running.admin.urls)
    await vi.waitFor(() => expect(client.isReady()).toBe(true), { timeout: 20_000 })
  })
  afterAll(() => client?.close())
  splitLaws(() => newStore({ send: redis(client.client).connect({}) }))

  test('A limiter with the client decides limits in several slots, without cluster() in its configuration.', async () => {
    const hour = { limit: 2, window: '1h', deadline: '10s' } as const
    const quota = limits(
      { user: hour, all: { ...hour, limit: 9 } },
      { store: redis(client.client) },
    )
    for (const user of ['ann', 'ben', 'cleo']) {
      const key = newSubject() + user
      const seen = []
      for (const _ of [1, 2, 3]) {
        const { reason } = await quota.limit([
          ['user', key],
          ['all', key.slice(0, -1)],
        ])
        seen.push(reason)
      }
      expect(seen).toEqual(['within-limit', 'within-limit', 'limited'])
    }
  })
})
