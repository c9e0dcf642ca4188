import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { StoreError } from '../../../../src/core/base/errors.ts'
import type { PolicyOptions } from '../../../../src/core/config/options.ts'
import { parseConfig } from '../../../../src/core/config/parse.ts'
import type { StoreRequest } from '../../../../src/core/connection/store.ts'
import { commandsBetween } from '../../../support/commands.ts'
import { useBridge } from '../../../support/many-lists.ts'
import { newSubject } from '../../../support/subjects.ts'

const { running, newStore, requestsOf, answering } = useBridge()

function policies(...options: Partial<PolicyOptions>[]) {
  return parseConfig({
    policies: options.map((option, index) => ({
      name: `p${index}`,
      limit: 5,
      window: '1h',
      ...option,
    })),
  }).policies
}

describe('a call of the script', () => {
  test('One call decides two requests on three subjects and five policies, each request as a whole.', async () => {
    const [a, b] = [newSubject(), newSubject()]
    const last = newSubject()
    const [p0, p1, p2, p3, full] = policies(
      {},
      { algorithm: 'fixed-window' },
      { algorithm: 'gcra', burst: 3 },
      { algorithm: 'token-bucket' },
      { limit: 1 },
    )
    const request = (cost: number): StoreRequest => ({
      mode: 'take',
      limits: [
        { subject: a, terms: p0!, cost },
        { subject: a, terms: p1!, cost },
        { subject: b, terms: p2!, cost },
        { subject: b, terms: p3!, cost },
        { subject: last, terms: full!, cost: 1 },
      ],
    })
    const store = newStore()
    const commands = await commandsBetween(running.redis.url, async () => {
      const { states } = await store.decide([request(2), request(1)])
      expect(states[0]!.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
        [true, 3],
        [true, 3],
        [true, 1],
        [true, 3],
        [true, 0],
      ])
      // The last policy refuses the second request, so the first four are not charged.
      expect(states[1]!.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
        [true, 3],
        [true, 3],
        [true, 1],
        [true, 3],
        [false, 0],
      ])
      expect(states[1]![4]!.retryAfterMs).toBeGreaterThan(3_599_000)
    })
    expect(commands).toEqual({ eval: 1, time: 1, mget: 1, set: 3 })
  })

  test('A call costs EVALSHA, TIME, GET and one SET for any number of limits of one subject, and no SET if refused.', async () => {
    const store = newStore()
    const subject = newSubject()
    const three = policies(
      { limit: 1 },
      { algorithm: 'fixed-window' },
      { algorithm: 'token-bucket' },
    )
    const request: StoreRequest = {
      mode: 'take',
      limits: three.map((policy) => ({ subject, terms: policy, cost: 1 })),
    }
    // The first call of each script is an EVAL.
    const another = three.map((policy) => ({ subject: newSubject(), terms: policy, cost: 1 }))
    await store.decide([{ mode: 'peek', limits: another }])
    const other = newSubject()
    await store.decide([
      { mode: 'take', limits: another.map((limit) => ({ ...limit, subject: other })) },
    ])
    const common = { evalsha: 1, time: 1, get: 1 }
    for (const [mode, expected] of [
      ['take', { ...common, set: 1 }],
      ['take', common],
      ['peek', common],
    ] as const) {
      const decide = () => store.decide([{ ...request, mode }])
      let http = 0
      const count = async () => {
        http = await requestsOf(decide)
      }
      expect(await commandsBetween(running.redis.url, count)).toEqual(expected)
      expect(http).toBe(1)
    }
  })
})

describe('a lost script cache', () => {
  test.skipIf(process.env.REDIS_URL)(
    'A script cache that is lost during traffic fails no request.',
    async () => {
      const store = newStore()
      const [policy] = policies({ limit: 1000 })
      const request: StoreRequest = {
        mode: 'take',
        limits: [{ subject: newSubject(), terms: policy!, cost: 1 }],
      }
      for (let round = 0; round < 20; round++) {
        const calls = Array.from({ length: 10 }, () => store.decide([request]))
        await running.client.sendCommand(['SCRIPT', 'FLUSH'])
        const replies = await Promise.all(calls)
        expect(replies.every(({ states }) => states[0]![0]!.allowed)).toBe(true)
      }
      const { states } = await store.decide([{ ...request, mode: 'peek' }])
      expect(states[0]![0]!.remaining).toBe(800)
    },
  )
})

describe('a store error', () => {
  const [policy] = policies({})
  const limits = [{ subject: 'planted-subject', terms: policy!, cost: 1 }]

  async function failure(options: Parameters<typeof newStore>[0]): Promise<StoreError> {
    const error = await newStore(options)
      .decide([{ mode: 'take', limits: limits }])
      .catch((error) => error)
    expect(error).toBeInstanceOf(StoreError)
    // However the error is printed, it contains no part of the call.
    const printed = `${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`
    expect(printed).not.toMatch(/planted|the-right-token|a-wrong-token|allow-key-locking|sluice:1/)
    return error
  }

  test.each([
    [200, '<html>502</html>', 'bad-reply'],
    [502, '<html>Bad Gateway planted-subject</html>', 'bad-reply'],
    [200, '{"result":"OK"}', 'bad-reply'],
    [200, '{"result":null}', 'bad-reply'],
    [200, '{}', 'bad-reply'],
    [200, '{"result":[1,2', 'bad-reply'],
    [
      400,
      '{"error":"ERR max requests limit exceeded. Limit: 500000, Usage: 500001"}',
      'over-quota',
    ],
    [400, '{"error":"ERR max daily request limit exceeded. Limit: 10000"}', 'over-quota'],
    [400, '{"error":"ERR max daily bandwidth limit exceeded"}', 'over-quota'],
    [400, '{"error":"ERR max monthly bandwidth limit exceeded. Limit: 50 GB"}', 'over-quota'],
    [429, '{"error":"ERR max commands per second exceeded"}', 'over-quota'],
    [400, '{"error":"ERR max concurrent connections exceeded"}', 'redis-error'],
    [
      400,
      '{"error":"ERR This database has been suspended for exceeding the defined budget limit"}',
      'over-quota',
    ],
    [
      400,
      '{"error":"ERR DB capacity quota exceeded. Threshold: 268435456 bytes, Usage: 268979370 bytes."}',
      'database-full',
    ],
    // Redis 6 puts its own text before an error within a script.
    [
      400,
      '{"error":"ERR Error running script (call to f_1): @user_script:1: ERR DB capacity quota exceeded"}',
      'database-full',
    ],
    [400, `{"error":"OOM command not allowed when used memory > 'maxmemory'."}`, 'database-full'],
    [400, '{"error":"ERR max request size exceeded. Limit: 1048576 bytes"}', 'redis-error'],
    [400, '{"error":"ERR max single record size exceeded"}', 'redis-error'],
    [400, '{"error":"ERR max key size exceeded. Limit: 32768 bytes"}', 'redis-error'],
    [
      400,
      '{"error":"ERR Dynamic keys are not allowed. Key was: sluice:1:quota:{suspended}:budget"}',
      'redis-error',
    ],
    [401, '{"error":"WRONGPASS invalid or missing auth token"}', 'unauthorized'],
    [
      400,
      '{"error":"NOPERM this user has no permissions to run the \'eval\' command"}',
      'unauthorized',
    ],
    [
      400,
      '{"error":"ERR unknown command, with args beginning with: planted-subject"}',
      'redis-error',
    ],
    [400, '{"error":"planted-subject"}', 'redis-error'],
    // The bridge has no answer of Redis.
    [503, '{"error":"ERR Redis is not reachable"}', 'unreachable'],
    [503, '{"error":"ERR Redis disconnected: read ECONNRESET"}', 'unreachable'],
    [503, '{"error":"ERR Redis did not respond within 200 ms"}', 'unreachable'],
    [503, '{"error":"ERR Redis was busy: the request has waited for 5000 ms"}', 'unreachable'],
    [500, '{"error":""}', 'redis-error'],
  ])('The response %d %s causes the error %s.', async (status, body, code) => {
    using server = await answering(() => body, { status })
    expect((await failure({ url: server.url })).code).toBe(code)
  })

  const script = 'ERR Error running script (call to f_3aac): @user_script:50:'
  test.each([
    ['ERR max single record size exceeded', 'ERR max single record size exceeded'],
    ['ERR max request size exceeded. Limit: 1048576 bytes', 'ERR max request size exceeded'],
    ['ERR unknown command planted-subject', 'ERR unknown command'],
    [
      "ERR unknown command 'eval', with args beginning with: planted-subject",
      'ERR unknown command',
    ],
    ['ERR Dynamic keys are not allowed. Key was: sluice:1', 'ERR Dynamic keys are not allowed'],
    ['ERR planted-subject', 'ERR'],
    ['ERR value is not an integer or out of range', 'ERR'],
    [
      `${script} @user_script: 50: -READONLY You can't write against a read only replica.`,
      'READONLY',
    ],
    [`${script} -WRONGTYPE Operation against a key`, 'WRONGTYPE'],
    [`${script} planted-subject -READONLY`, 'ERR Error running script'],
    ["READONLY You can't write against a read only replica.", 'READONLY'],
    ['MISCONF Redis is configured to save RDB snapshots', 'MISCONF'],
    ['planted-subject', undefined],
  ])('The text %s is logged as %s.', async (text, cause) => {
    using server = await answering(() => JSON.stringify({ error: text }), { status: 400 })
    expect(await failure({ url: server.url })).toMatchObject({ code: 'redis-error' })
    expect((await failure({ url: server.url })).cause).toBe(cause)
  })

  test('A failed connection causes the error unreachable, after one attempt, because a retry might charge twice.', async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.resetAndDestroy()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect((await failure({ url })).code).toBe('unreachable')
    expect(connections).toBe(1)
    server.close()
  })

  test('A slow server causes the error timeout at the deadline.', async () => {
    using server = await answering(() => '{"result":[]}', { delayMs: 5_000 })
    const start = performance.now()
    expect((await failure({ url: server.url, deadlineMs: 100 })).code).toBe('timeout')
    expect(performance.now() - start).toBeLessThan(4_000)
  })

  test('A call with a deadline runs on after it, for its late reply.', async () => {
    using server = await answering(() => '{"result":"late"}', { delayMs: 300 })
    const deciding = newStore({ url: server.url }).decide([{ mode: 'take', limits }], {
      deadlineMs: 50,
    })
    await expect(deciding).rejects.toMatchObject({ code: 'bad-reply' })
  })

  test.each([
    [undefined, 'token'],
    ['', 'token'],
    ['https://example.com', undefined],
    ['nonsense', 'token'],
    ['rediss://default:planted@example.com:6379', 'token'],
  ])('The URL %j with the token %j causes the error not-configured.', async (url, token) => {
    expect((await failure({ url, token })).code).toBe('not-configured')
  })

  test('The message of a script error has the text of the script.', async () => {
    const subject = newSubject()
    await running.client.set(`sluice:1:{${subject}}`, 'planted')
    const error = await newStore()
      .decide([{ mode: 'take', limits: [{ ...limits[0]!, subject }] }])
      .catch((error) => error)
    expect(error.message).toBe(
      'redis-error: Redis refused the command (ERR sluice: key 1 holds a record of an unknown format)',
    )
  })

  test('An invalid call is not sent, and its error names the request and the value.', async () => {
    const deciding = () =>
      newStore().decide([{ mode: 'take', limits: [{ ...limits[0]!, cost: -1 }] }])
    const http = await requestsOf(() =>
      expect(deciding()).rejects.toThrow(
        'internal: the limiter failed (ERR sluice: request 1: unexpected cost)',
      ),
    )
    expect(http).toBe(0)
  })
})
