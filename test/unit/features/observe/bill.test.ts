/** The computed bill of a call equals that of the bridge, which counts the commands that Redis runs. */
import fc from 'fast-check'
import { createClient } from 'redis'
import { describe, expect, test } from 'vitest'
import { allParts } from '../../../../cli/replay/decide/script-parts.ts'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type {
  Limit,
  StoreCall,
  StoreRequest,
  Terms,
} from '../../../../src/core/connection/store.ts'
import type { Pack } from '../../../../src/core/connection/upstash/pack.ts'
import {
  createUpstashReader,
  createUpstashStore,
  type UpstashOptions,
} from '../../../../src/core/connection/upstash/upstash.ts'
import { defaultFields } from '../../../../src/features/defaults.ts'
import { beginCall } from '../../../../src/features/observe/measure.ts'
import { anyLimits } from '../../../support/any-limits.ts'
import { useDatabase } from '../../../support/database.ts'
import { isLong } from '../../../support/long.ts'

const database = useDatabase()

const direct = async (...command: string[]) => {
  const client = await createClient({ url: database.redis.url }).connect()
  await client.sendCommand(command)
  await client.close()
}

function setUp(options: Partial<UpstashOptions> = {}) {
  const ended: StoreCall[] = []
  const observer = {
    begin: (sent: Pack[]) => beginCall(sent, (call) => void ended.push(call), Date.now),
  }
  const store = createUpstashStore({
    url: database.bridge.url,
    token: database.bridge.token,
    deadlineMs: 10_000,
    lua: allParts,
    observer,
    ...options,
  })
  /** The calls and commands of `work`: those of the bridge, and the computed ones. */
  async function billed(work: () => Promise<unknown>) {
    const before = database.bridge.stats()[database.bridge.token] ?? { http: 0, commands: 0 }
    const known = ended.length
    await work()
    const after = database.bridge.stats()[database.bridge.token]!
    const own = ended.slice(known)
    return {
      bridge: [after.http - before.http, after.commands - before.commands],
      own: [own.length, own.reduce((sum, { billedCommands }) => sum + billedCommands, 0)],
    }
  }
  return { store, ended, billed, observer }
}

const parsed = (...options: Partial<PolicyOptions>[]) =>
  parseConfig(
    {
      policies: options.map((one, index) => ({
        name: `p${index}`,
        limit: 3,
        window: '1h',
        ...one,
      })),
    },
    defaultFields,
  ).policies
const terms = parsed(
  {},
  { algorithm: 'fixed-window' },
  { algorithm: 'token-bucket' },
  { algorithm: 'gcra', burst: 2 },
)

let subjects = 0
const newSubject = () => `bill-${++subjects}`

const request = fc.record({
  mode: fc.constantFrom('take' as const, 'take' as const, 'follow' as const, 'peek' as const),
  limits: anyLimits(terms),
})
const calls = fc.array(
  fc.array(fc.array(request, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 }),
  { minLength: 1, maxLength: 4 },
)

test.each(['store', 'edge'] as const)(
  'The bill for takes and peeks of windows and buckets is exact, by the clock of the %s.',
  async (clock) => {
    const { store, billed } = setUp({ clock })
    await fc.assert(
      fc.asyncProperty(calls, async (calls) => {
        const prefix = newSubject()
        for (const lists of calls) {
          const named = lists.map((list) =>
            list.map(
              ({ mode, limits }): StoreRequest => ({
                mode,
                limits: limits.map((one) => ({ ...one, subject: `${prefix}-${one.subject}` })),
              }),
            ),
          )
          const { own, bridge } = await billed(() => store.decideEach(named, {}))
          expect(own).toEqual(bridge)
        }
      }),
      { numRuns: isLong ? 60 : 25 },
    )
  },
)

const take = (subject: string, policy = terms[0]!, more = {}): StoreRequest => ({
  mode: 'take',
  limits: [{ subject, terms: policy, cost: 1, ...more }],
})

describe('the bill for other calls', () => {
  test('The refusals that count towards a ban, the start of a ban, and refusals during it are exact.', async () => {
    const [policy] = parsed({ limit: 1, penalty: { after: 2, within: '1h', ban: '1h' } })
    const { penalty } = policy!
    const { store, billed } = setUp()
    const subject = newSubject()
    const commands: number[] = []
    for (let n = 0; n < 5; n++) {
      const { own, bridge } = await billed(() => store.decide([take(subject, policy, { penalty })]))
      expect(own).toEqual(bridge)
      commands.push(own[1]!)
    }
    expect(commands).toEqual([4, 4, 4, 3, 3])
  })

  test('A call with an idempotency key, its replay and a conflict are exact.', async () => {
    const { store, billed, ended } = setUp()
    const subject = newSubject()
    const idempotency = { key: newSubject(), fingerprint: 'x', forMs: 60_000 }
    const once = (more = {}) =>
      billed(() =>
        store.decideEach([[take(subject)]], { idempotency: { ...idempotency, ...more } }),
      )
    for (const [more, commands] of [
      [{}, 5],
      [{}, 3],
      [{ fingerprint: 'y' }, 3],
    ] as const) {
      expect(await once(more)).toEqual({ own: [1, commands], bridge: [1, commands] })
    }
    expect(ended.filter(({ code }) => code)).toEqual([])
  })

  test('A lost script costs one more call and one more command, and is not a failure.', async () => {
    const { store, billed, ended } = setUp()
    const subject = newSubject()
    await store.decide([take(subject)])
    await direct('SCRIPT', 'FLUSH')
    expect(await billed(() => store.decide([take(subject)]))).toEqual({
      own: [2, 5],
      bridge: [2, 5],
    })
    expect(ended.filter(({ code }) => code)).toEqual([])
  })

  test.each(['store', 'edge'] as const)(
    'A compiled script that declines has read the record, by the clock of the %s.',
    async (clock) => {
      const { store, billed, ended } = setUp({ clock })
      const subject = newSubject()
      // In a form that no script writes: with a needless colon.
      const { tag } = terms[1]!
      await direct('SET', `sluice:1:{${subject}}`, `1;${tag}:${Date.now()}:3600000:1:;`)
      const commands = clock === 'edge' ? 2 + 3 : 3 + 4
      const { own, bridge } = await billed(() => store.decide([take(subject, terms[1])]))
      expect({ own, bridge }).toEqual({ own: [2, commands], bridge: [2, commands] })
      expect(ended.filter(({ code }) => code)).toEqual([])
    },
  )

  test('Each operation is exact, with and without something to change.', async () => {
    const options = { limit: 3, penalty: { after: 2, within: '1h', ban: '1h' } } as const
    const [counted, log, slots] = parsed(
      options,
      { algorithm: 'sliding-log' },
      { algorithm: 'concurrency' },
    )
    const { store, billed } = setUp()
    const limit = (terms: Terms, more: Partial<Limit> = {}): Limit => ({
      ...{ subject: newSubject(), terms, cost: 1 },
      ...more,
    })
    const penal = limit(counted!, { penalty: counted!.penalty! })
    const override = { share: 0, scalesBurst: true }
    const resized = limit(terms[0]!, { override })
    const values: Terms = { ...slots!, tag: 'values', algorithm: 'distinct' }
    const limits = [
      ...terms.map((one) => limit(one)),
      ...[penal, resized, limit(log!), limit(log!, { override })],
      ...[limit(slots!, { slot: 'slot-1' }), limit(values, { values: ['a'] })],
    ]
    const inOrder = (limit: Limit, ...modes: Exclude<StoreRequest['mode'], 'override'>[]) =>
      modes.map((mode): StoreRequest => ({ mode, limits: [limit] }))
    const calls: StoreRequest[] = [
      ...limits.flatMap((one) => inOrder(one, 'reset', 'take', 'take', 'take', 'take')),
      ...limits.flatMap((one) => inOrder(one, 'reset', 'take')),
      ...limits.flatMap((one) => inOrder(one, 'refund', 'refund', 'peek')),
      ...inOrder(penal, 'unban', 'ban', 'take', 'unban', 'unban'),
      { mode: 'restore', limits: [resized] },
      { mode: 'override', units: 5, forMs: 60_000, limits: [resized] },
      { mode: 'take', limits: [resized] },
      { mode: 'restore', limits: [resized] },
    ]
    for (const call of calls) {
      const { own, bridge } = await billed(() => store.decide([call]))
      expect(own, JSON.stringify(call)).toEqual(bridge)
    }
  })

  test('The read of a live document is one command.', async () => {
    const { billed, observer } = setUp()
    const read = createUpstashReader({
      url: database.bridge.url,
      token: database.bridge.token,
      observer,
    })
    expect(await billed(() => read('none'))).toEqual({ own: [1, 1], bridge: [1, 1] })
  })
})

describe('a call that fails', () => {
  test('An error of Redis counts as one command, with its code.', async () => {
    const { store, ended } = setUp()
    const subject = newSubject()
    await direct('LPUSH', `sluice:1:{${subject}}`, 'x')
    await store.decide([take(subject)]).catch(() => {})
    expect(ended).toMatchObject([{ code: 'redis-error', billedCommands: 1, lists: 1 }])
  })

  test('A call without an answer counts without commands, with its code.', async () => {
    const { store, ended } = setUp({ url: 'http://127.0.0.1:9' })
    await store.decide([take(newSubject())]).catch(() => {})
    expect(ended).toMatchObject([{ code: 'unreachable', billedCommands: 0 }])
  })

  test('A store without a database makes no call.', async () => {
    const { store, ended } = setUp({ url: undefined })
    await store.decide([take(newSubject())]).catch(() => {})
    expect(ended).toEqual([])
  })
})

test('A call is reported to its caller when it is sent, and has its numbers at its end.', async () => {
  const { store, ended } = setUp()
  const sent: StoreCall[] = []
  const deciding = store.decideEach([[take(newSubject())], [take(newSubject())]], {
    onCall: (call) => void sent.push(call),
  })
  expect(sent).toEqual([{ ms: 0, billedCommands: 0, lists: 2 }])
  await deciding
  expect(ended).toEqual(sent)
  expect(sent[0]!.billedCommands).toBe(5)
})
