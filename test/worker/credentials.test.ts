/** Credentials in workerd, which fails requests that wait for the I/O of another request. Such failures only appear under load. */
import { Agent, get, type IncomingMessage, type RequestOptions } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { BuiltModules } from '../../tools/build.ts'
import { startWorker } from '../../tools/worker.ts'
import { bundled } from '../support/bundled.ts'
import { CROSS_REQUEST_IO } from '../support/cross-request-io.ts'
import { type Issuer, json, type Signer, signer, startIssuer } from '../support/issuer.ts'
import { isLong } from '../support/long.ts'

let built: BuiltModules
let issuer: Issuer
let signers: Signer[]
let tokens: string[]

beforeAll(async () => {
  built = await bundled('test/worker/credentials-worker.ts')
  issuer = await startIssuer()
  const kinds = ['RS256', 'PS256', 'ES256', 'EdDSA']
  signers = await Promise.all(kinds.map((alg) => signer(alg, `key-${alg}`)))
  tokens = await Promise.all(signers.map(({ sign }) => sign({ sub: 'ann' })))
})
afterAll(() => issuer.close())
beforeEach(() => {
  issuer.fetches = 0
  issuer.answer = json({ keys: signers.map(({ jwk }) => jwk) })
})

const start = (env: Record<string, string> = {}) =>
  startWorker(built, {
    env: { JWT: JSON.stringify({ jwks: issuer.url }), DEADLINE_MS: '10000', ...env },
  })

type Running = Awaited<ReturnType<typeof start>>

const send = (worker: Running, token: string) =>
  fetch(worker.url, { headers: { authorization: `Bearer ${token}` } })

async function ask(worker: Running, token: string) {
  const response = await send(worker, token)
  if (response.status !== 200) return `${response.status} ${await response.text()}`
  const { sub, same } = (await response.json()) as { sub: string | null; same: boolean }
  return same ? (sub ?? 'no subject') : 'verified twice'
}

/** The number of requests that have waited for the keys, with one more that gets none. */
async function waits(worker: Running) {
  const { sub, waits } = (await (await send(worker, tokens[0]!)).json()) as {
    sub: string | null
    waits: number
  }
  expect(sub).toBeNull()
  return waits
}

/** The number of times of each answer. */
const tally = (answers: string[]) =>
  Object.fromEntries(
    [...new Set(answers)].map((one) => [one, answers.filter((other) => other === one).length]),
  )

async function withWorker(env: Record<string, string>, run: (worker: Running) => Promise<void>) {
  const worker = await start(env)
  try {
    await run(worker)
    expect(worker.logs.join('\n')).not.toMatch(CROSS_REQUEST_IO)
  } finally {
    await worker.stop()
  }
}

const CLIENTS = isLong ? 64 : 24
const REQUESTS = isLong ? 200 : 60
/** How long the busy clients send requests, in ms. Run `test:long` with SOAK_MS=60000 before a release. */
const SOAK_MS = Number(process.env.SOAK_MS ?? (isLong ? 4000 : 500))

describe('many concurrent requests on a new isolate', () => {
  const concurrently = (worker: Running) =>
    Promise.all(Array.from({ length: REQUESTS }, (_, index) => ask(worker, tokens[index % 4]!)))

  test('The first concurrent requests of an isolate are verified with one download of the keys.', async () => {
    for (const delayMs of isLong ? [0, 5, 300] : [5]) {
      issuer.fetches = 0
      issuer.answer = (response) =>
        setTimeout(() => json({ keys: signers.map(({ jwk }) => jwk) })(response, null!), delayMs)
      await withWorker({}, async (worker) => {
        expect(tally(await concurrently(worker))).toEqual({ ann: REQUESTS })
        expect([issuer.fetches, worker.logs]).toEqual([1, []])
      })
    }
  }, 90_000)

  test.concurrent.for<[string, string, Issuer['answer']]>([
    ['hangs', 'timeout', () => {}],
    [
      'sends one byte at a time',
      'timeout',
      (response) => {
        const drip = setInterval(() => response.write(' '), 20)
        response.on('close', () => clearInterval(drip))
      },
    ],
    ['fails', 'bad-status', (response) => response.writeHead(500).end()],
    ['redirects', 'bad-status', (response) => response.writeHead(302, { location: '/x' }).end()],
    ['resets the connection', 'unreachable', (response) => response.socket!.destroy()],
    [
      'sends an endless body',
      'too-large',
      (response) => {
        const more = () => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536, 32)));
        }
        response.on('drain', more)
        more()
      },
    ],
  ])(
    'While the issuer %s, tokens count as missing within the deadline (%s). Afterwards they are verified.',
    { timeout: 90_000 },
    async ([, code, answer], { expect }) => {
      const issuer = await startIssuer(answer)
      const env = { JWT: JSON.stringify({ jwks: issuer.url }), DEADLINE_MS: '500' }
      await withWorker(env, async (worker) => {
        expect(tally(await concurrently(worker))).toEqual({ 'no subject': REQUESTS })
        const before = await waits(worker)
        expect(before).toBeGreaterThan(0)
        // The requests of the next ten seconds do not wait again.
        expect(await waits(worker)).toBe(before)
        await expect.poll(() => worker.logs).not.toEqual([])
        expect(JSON.parse(worker.logs[0]!)).toMatchObject({ event: 'jwks', code })

        issuer.answer = json({ keys: signers.map(({ jwk }) => jwk) })
        await expect.poll(() => ask(worker, tokens[0]!)).toBe('ann')
        expect(tally(await concurrently(worker))).toEqual({ ann: REQUESTS })
      })
      await issuer.close()
    },
  )
})

test('Requests of many busy clients are all verified while the keys are downloaded repeatedly.', async () => {
  // A clock that runs 600 times as fast: the keys are ten minutes old every second.
  await withWorker({ SPEED: '600' }, async (worker) => {
    const strange = await (await signer('RS256', 'strange')).sign({ sub: 'eve' })
    const fast = await Promise.all(
      signers.map(({ sign }) => sign({ sub: 'ann', exp: 1e10 })), // valid for any time of the fast clock
    )
    const answers: string[] = []
    const until = performance.now() + SOAK_MS
    // A busy machine needs more time for requests and downloads.
    const isEnough = () => performance.now() > until && answers.length > 100 && issuer.fetches > 2
    const client = async (index: number) => {
      for (let turn = index; !isEnough(); turn++) {
        const isStrange = turn % 5 === 4
        const answer = await ask(worker, isStrange ? strange : fast[turn % 4]!)
        answers.push(isStrange ? `strange: ${answer}` : answer)
        // The issuer answers, fails and is slow in turn, half a second each.
        issuer.answer = [
          json({ keys: signers.map(({ jwk }) => jwk) }),
          (response: Parameters<Issuer['answer']>[0]) => response.writeHead(500).end(),
          (response: Parameters<Issuer['answer']>[0]) =>
            setTimeout(() => json({ keys: signers.map(({ jwk }) => jwk) })(response, null!), 100),
        ][Math.floor(performance.now() / 500) % 3]!
      }
    }
    expect(await ask(worker, fast[0]!)).toBe('ann')
    await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)))
    expect(Object.keys(tally(answers)).sort()).toEqual(['ann', 'strange: no subject'])
  })
})

test('Requests of many busy clients are all answered while the isolate forgets its keys repeatedly.', async () => {
  const answer = json({ keys: signers.map(({ jwk }) => jwk) })
  issuer.answer = (response, request) => setTimeout(() => answer(response, request), 5)
  // Errors of shared promises appear with warm code and under high load, and not in a first request. So the Worker forgets
  // its keys repeatedly, most tokens have an unknown key, which is a fast check, and the client has little overhead.
  const strange = await signers[0]!.sign({ sub: 'eve' }, { kid: 'unknown-key' })
  await withWorker({ FORGET_MS: '8' }, async (worker) => {
    const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
    const until = performance.now() + SOAK_MS
    const answers: string[] = []
    const client = async (index: number) => {
      for (let turn = index; performance.now() < until || issuer.fetches <= 20; turn++) {
        const own = turn % 16 === 0
        const headers = { authorization: `Bearer ${own ? tokens[2] : strange}` }
        const answer = await raw(worker.directUrl, { agent, headers })
        answers.push(`${own ? 'own' : 'strange'}: ${answer}`)
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)))
    agent.destroy()
    expect(Object.keys(tally(answers)).sort()).toEqual(['own: 200 ann', 'strange: 200 null'])
  })
})

/** The status and the subject in the response. */
const raw = (url: string, options: RequestOptions) =>
  new Promise<string>((resolve, reject) => {
    const whole = async (response: IncomingMessage) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve(`${response.statusCode} ${/"sub":"?(\w+)/.exec(text)?.[1] ?? text}`)
    }
    get(url, options, (response) => whole(response).catch(reject)).on('error', reject)
  })

test('Requests are verified after 20 clients hung up during the download of the keys.', async () => {
  issuer.answer = (response) =>
    setTimeout(() => json({ keys: signers.map(({ jwk }) => jwk) })(response, null!), 300)
  await withWorker({}, async (worker) => {
    const aborted = Array.from({ length: 20 }, () =>
      fetch(worker.directUrl, {
        headers: { authorization: `Bearer ${tokens[0]}` },
        signal: AbortSignal.timeout(50),
      }).catch(() => 'aborted'),
    )
    expect(new Set(await Promise.all(aborted))).toEqual(new Set(['aborted']))
    await sleep(20)
    expect(await ask(worker, tokens[1]!)).toBe('ann')
    expect(issuer.fetches).toBeLessThanOrEqual(2)
  })
})

test('workerd reads API keys and tokens of trusted proxies.', async () => {
  const env = { SLUICE_PROXY_TOKEN: 'a-token-of-the-api old-token-of-the-api' }
  await withWorker(env, async (worker) => {
    const get = async (headers: Record<string, string>) =>
      (await fetch(worker.url, { headers })).json()
    expect(await get({ 'x-api-key': 'abc', 'sluice-token': 'old-token-of-the-api' })).toMatchObject(
      {
        key: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad', // the example of FIPS 180-4
        api: true,
      },
    )
    expect(await get({ 'sluice-token': 'a-token-of-the-gat' })).toMatchObject({
      key: null,
      api: false,
    })
  })
})
