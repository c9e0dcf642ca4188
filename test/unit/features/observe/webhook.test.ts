/** Deliveries of a webhook to a real server on loopback, with a simulated clock. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  createSender,
  isWebhookUrl,
  keysOf,
  type SenderOptions,
  sign,
} from '../../../../src/features/observe/webhook.ts'
import {
  keyOf,
  type Receiver,
  SECRET,
  signatureOf,
  startReceiver,
} from '../../../support/webhook-receiver.ts'

const START = 1_789_000_000_123

let receiver: Receiver
let now: number
let waits: number[]
let lines: string[]
type Sender = ReturnType<typeof createSender>
let sender: Sender

function create(options: Partial<SenderOptions> = {}, secret: unknown = SECRET): Sender {
  const created = createSender({
    url: receiver.url,
    log: (event, code, message) => void lines.push(`${event} ${code}: ${message}`),
    clock: () => now,
    sleep: async (ms) => {
      waits.push(ms)
      now += ms
    },
    ...options,
  })
  created.isReady({ SLUICE_WEBHOOK_SECRET: secret })
  return created
}

beforeEach(async () => {
  receiver = await startReceiver()
  now = START
  waits = []
  lines = []
  sender = create()
})
afterEach(() => receiver.close())

/** Answers with these statuses in order, then with 200. */
function answerWith(...statuses: number[]) {
  receiver.answer = (response, attempt) => response.writeHead(statuses[attempt - 1] ?? 200).end()
}

describe('a signed request', () => {
  test('A notice is one POST request with the headers of Standard Webhooks and an idempotency key.', async () => {
    expect(await sender.send('name', '{"ä":1}')).toBe(true)
    const [post, ...others] = receiver.posts
    expect(others).toEqual([])
    expect(post).toMatchObject({ method: 'POST', path: '/hook', body: '{"ä":1}' })
    expect(post!.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-timestamp': '1789000000',
    })
    expect(post!.headers['webhook-id']).toMatch(/^[0-9a-f]{64}$/)
    expect(post!.headers['idempotency-key']).toBe(post!.headers['webhook-id'])
    expect(post!.headers['webhook-signature']).toBe(signatureOf(post!, keyOf(SECRET)))
    expect([sender.dropped(), lines]).toEqual([0, []])
  })

  test('The signature equals that of the test vector of Standard Webhooks.', async () => {
    const keys = keysOf('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')!
    const signature = await sign(
      keys,
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      1614265330,
      '{"test": 2432232314}',
    )
    expect(signature).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  })

  test('A secret without whsec_ is the key itself, in UTF-8.', async () => {
    await create({}, 'a secret phrase: ü').send('name', '{}')
    const [post] = receiver.posts
    expect(post!.headers['webhook-signature']).toBe(
      signatureOf(post!, Buffer.from('a secret phrase: ü')),
    )
  })

  test('Two secrets give two signatures, so that a receiver can change from one to the next.', async () => {
    const next = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
    await create({}, `${SECRET} ${next}\n`).send('name', '{}')
    const [post] = receiver.posts
    const signatures = [SECRET, next].map((secret) => signatureOf(post!, keyOf(secret)))
    expect(post!.headers['webhook-signature']).toBe(signatures.join(' '))
  })

  test('The same name gives the same id in two isolates, and another name gives another id.', async () => {
    await sender.send('one', '{"from":1}')
    await create().send('one', '{"from":2}')
    await sender.send('other', '{}')
    const [first, second, third] = receiver.ids()
    expect(first).toBe(second)
    expect(first).not.toBe(third)
  })
})

describe('the secret', () => {
  const missing =
    'no-secret: no notice is sent: set SLUICE_WEBHOOK_SECRET to whsec_ and 32 random bytes in base64'
  const wrong = 'bad-secret: no notice is sent: SLUICE_WEBHOOK_SECRET: expected base64 after whsec_'
  test.each([
    ...[undefined, ' ', 5].map((secret) => [secret, missing] as const),
    ...[
      'whsec_',
      'whsec_a',
      'whsec_####',
      'whsec_ab-_',
      'whsec_YWJj plain',
      'whsec_YWJjd',
      'whsec_YWJj=',
      'whsec_YWJj==',
      'whsec_YW=',
    ].map((secret) => [secret, wrong] as const),
  ])(
    'The secret %j is not usable, and one log line says why without the secret.',
    (secret, line) => {
      const unready = create({}, secret)
      for (const _ of [1, 2, 3]) {
        expect(unready.isReady({ SLUICE_WEBHOOK_SECRET: secret })).toBe(false)
      }
      expect(lines).toEqual([`webhook ${line}`])
    },
  )

  test('A new secret in the environment is used at once.', async () => {
    const ready = create({}, undefined)
    expect(ready.isReady({ SLUICE_WEBHOOK_SECRET: SECRET })).toBe(true)
    await ready.send('name', '{}')
    const [post] = receiver.posts
    expect(post!.headers['webhook-signature']).toBe(signatureOf(post!, keyOf(SECRET)))
  })
})

describe('retries', () => {
  test('A receiver that answers 500 for a while gets the notice again, with the same id and a new timestamp.', async () => {
    answerWith(500, 503, 408, 429)
    expect(await sender.send('name', '{}')).toBe(true)
    expect(receiver.posts).toHaveLength(5)
    expect(new Set(receiver.ids()).size).toBe(1)
    const timestamps = receiver.posts.map(({ headers }) => Number(headers['webhook-timestamp']))
    expect(timestamps).toEqual([...timestamps].sort())
    expect(timestamps.at(-1)).toBe(Math.floor(now / 1000))
    for (const post of receiver.posts) {
      expect(post.headers['webhook-signature']).toBe(signatureOf(post, keyOf(SECRET)))
    }
    expect([sender.dropped(), lines]).toEqual([0, []])
  })

  test('The waits double from half a second, with a jitter of up to one half.', async () => {
    answerWith(500, 500, 500, 500)
    await sender.send('name', '{}')
    expect(waits).toHaveLength(4)
    waits.forEach((ms, attempt) => {
      expect(ms).toBeGreaterThanOrEqual(250 * 2 ** attempt)
      expect(ms).toBeLessThanOrEqual(500 * 2 ** attempt)
    })
    answerWith(500)
    receiver.posts = []
    await sender.send('name', '{}')
    expect(waits[4]).not.toBe(waits[0])
  })

  test('A notice that fails for 25 seconds is dropped and counted, and the caller may send it later.', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    expect(await sender.send('name', '{}')).toBe(false)
    expect(now - START).toBeLessThan(25_000)
    expect(receiver.posts.length).toBeGreaterThan(4)
    expect(sender.dropped()).toBe(1)
    expect(lines).toEqual([
      'webhook failed: a near-limit notice is lost: the receiver last answered 500',
    ])
  })

  test.each([400, 401, 404, 410, 422, 301, 307])(
    'A receiver that answers %i gets no second request.',
    async (status) => {
      receiver.answer = (response) => response.writeHead(status, { location: '/other' }).end()
      expect(await sender.send('name', '{}')).toBe(true)
      expect(receiver.posts.map(({ path }) => path)).toEqual(['/hook'])
      expect(sender.dropped()).toBe(1)
      expect(lines).toEqual([
        `webhook rejected: a near-limit notice is lost: the receiver answered ${status}`,
      ])
    },
  )

  test('Retry-After delays the next attempt, and ends the attempts if it is beyond the deadline.', async () => {
    receiver.answer = (response, attempt) =>
      response.writeHead(attempt < 2 ? 429 : 200, { 'retry-after': '7' }).end()
    expect(await sender.send('name', '{}')).toBe(true)
    expect(waits).toEqual([7000])
    receiver.answer = (response) => response.writeHead(503, { 'retry-after': '3600' }).end()
    expect(await sender.send('name', '{}')).toBe(false)
    expect(waits).toEqual([7000])
  })

  test('Retry-After may be a date.', async () => {
    const date = new Date(START + 6_877).toUTCString() // a whole second
    receiver.answer = (response, attempt) =>
      response.writeHead(attempt < 2 ? 503 : 200, { 'retry-after': date }).end()
    expect(await sender.send('name', '{}')).toBe(true)
    expect(waits).toEqual([6_877])
  })

  test('A Retry-After that cannot be read for certain does not change the wait.', async () => {
    for (const value of ['-5', 'soon', '0x10', '1e1']) {
      receiver.answer = (response, attempt) =>
        response.writeHead(attempt % 2 === 1 ? 503 : 200, { 'retry-after': value }).end()
      expect(await sender.send(value, '{}')).toBe(true)
    }
    expect(waits).toHaveLength(4)
    expect(waits.every((ms) => ms > 0 && ms <= 500)).toBe(true)
  })

  test('A receiver that hangs costs one timeout for each attempt, then the notice is dropped.', async () => {
    receiver.answer = () => {}
    const impatient = create({ attemptMs: 200 })
    expect(await impatient.send('name', '{}')).toBe(false)
    expect(receiver.posts.length).toBeGreaterThan(4)
    expect(lines).toEqual([
      'webhook failed: a near-limit notice is lost: the receiver did not answer',
    ])
  })

  test('A receiver that recovers from hanging gets the notice.', async () => {
    receiver.answer = (response, attempt) => attempt > 2 && response.end()
    expect(await create({ attemptMs: 500 }).send('name', '{}')).toBe(true)
    expect(receiver.posts).toHaveLength(3)
  })

  test('A body without end does not hold the delivery.', async () => {
    receiver.answer = (response) => response.writeHead(200).write('x')
    expect(await sender.send('name', '{}')).toBe(true)
  })

  test('An unreachable receiver is tried again.', async () => {
    await receiver.close()
    expect(await sender.send('name', '{}')).toBe(false)
    expect(waits.length).toBeGreaterThan(4)
    receiver = await startReceiver()
  })

  test('No timer remains after a delivery.', async () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    await sender.send('first', '{}') // opens the connection, which has a timer of its own
    const before = timers()
    await sender.send('second', '{}')
    expect(timers()).toBeLessThanOrEqual(before)
  })

  test('A clock that is set back does not prolong the attempts without end.', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    const stuck = create({
      sleep: async () => {
        now -= 60_000
      },
    })
    expect(await stuck.send('name', '{}')).toBe(false)
    expect(receiver.posts).toHaveLength(8)
  })
})

describe('the bound of notices in flight', () => {
  test('Of 130 notices at once 100 are delivered, and 30 are dropped and counted.', async () => {
    const all = await Promise.all(
      Array.from({ length: 130 }, (_, index) => sender.send(`${index}`, '{}')),
    )
    expect(all.filter(Boolean)).toHaveLength(100)
    expect(receiver.posts).toHaveLength(100)
    expect(sender.dropped()).toBe(30)
    expect(lines[0]).toBe('webhook full: a near-limit notice is lost: 100 are in flight')
    expect(await sender.send('later', '{}')).toBe(true)
  })

  test('Notices of cancelled requests free their place at their deadline.', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    const cancelled = create({ sleep: () => new Promise(() => {}) })
    for (let index = 0; index < 100; index += 1) void cancelled.send(`${index}`, '{}')
    await expect.poll(() => receiver.posts.length).toBe(100)
    now += 24_999
    expect(await cancelled.send('early', '{}')).toBe(false)
    now += 1
    answerWith()
    expect(await cancelled.send('late', '{}')).toBe(true)
  })
})

test.each([
  ['https://hooks.example.com/limits?team=1', true],
  ['http://127.0.0.1:8080/', true],
  ['http://127.1/', true],
  ['http://localhost/hook', true],
  ['http://[::1]:9/', true],
  ['http://hooks.example.com/', false],
  ['http://127.0.0.1.example.com/', false],
  ['http://localhost.example.com/', false],
  ['http://127.0.0.1@example.com/', false],
  ['https://user:secret@example.com/', false],
  ['http://10.0.0.1/', false],
  ['ftp://127.0.0.1/', false],
  ['javascript:alert(1)', false],
  ['hooks.example.com', false],
  ['', false],
  [undefined, false],
])('The URL %s of a webhook is accepted: %s.', (url, accepted) => {
  expect(isWebhookUrl(url)).toBe(accepted)
})
