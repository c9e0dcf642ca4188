/** Laws of a Redis Cluster: its slots decide like one database, and never exceed a limit. */
import fc from 'fast-check'
import { describe, expect, vi } from 'vitest'
import { recordOf } from '../../src/core/connection/upstash/script.ts'
import { crc16, slotOf } from '../../src/stores/cluster/slot.ts'
import { useCluster } from '../support/cluster.ts'
import { property } from '../support/law.ts'
import { splitLaws } from '../support/split-laws.ts'

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
      subject: fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
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
