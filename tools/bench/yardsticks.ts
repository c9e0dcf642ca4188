/** `npm run yardsticks`: figures that others have published, beside those of Sluice in the same situation, as a Markdown table. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startBridge } from 'sluice-upstash-bridge'
import { slidingLog } from '../../src/core/connection/algorithms/sliding-log.ts'
import { slidingWindow } from '../../src/core/connection/algorithms/sliding-window.ts'
import { createSluice } from '../../src/hosts/app/sluice.ts'
import { limits } from '../../src/limits/limits.ts'
import { outbound } from '../../src/outbound/index.ts'
import { limitedOrigin } from '../../test/support/limited-origin.ts'
import { createRandom, gapMs } from './random.ts'
import { openServer } from './server.ts'
import { simulate } from './simulate/run.ts'
import { digits, table } from './stack/report/table.ts'

interface Yardstick {
  what: string
  /** What was published, with the address. */
  published: string
  /** What differs from the published situation. */
  limits: string
  measure(): Promise<string> | string
}

const server = await openServer()
if (!server.owned) throw new Error('This command empties its Redis. Unset REDIS_URL.')
const bridge = await startBridge({ redis: server.url })
const env = { UPSTASH_REDIS_REST_URL: bridge.url, UPSTASH_REDIS_REST_TOKEN: bridge.token }
const deadline = '10s'
const percent = (share: number) => `${digits(share * 100)} %`
const each = <T>(count: number, task: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => task(index)))

/** A log of 400,000 requests, of clients whose rates are up to twice the limit, decided with two counters and exactly. */
function wrongDecisions(): string {
  const terms = { limit: 100, windowMs: 60_000, burst: 100, align: 'clock' as const }
  const random = createRandom(1)
  let [requests, wrong] = [0, 0]
  while (requests < 400_000) {
    const rate = (100 / 60) * 2 ** (1 - 8 * random())
    const deciders = [slidingWindow, slidingLog].map((decide) => ({
      ...{ decide, admitted: 0, state: undefined as Parameters<typeof slidingWindow>[3] },
    }))
    for (let now = 0; now < 3_600_000; now += gapMs(rate, random)) {
      requests += 1
      for (const one of deciders) {
        const { allowed, state } = one.decide(Math.floor(now), terms, 1, one.state)
        if (state) one.state = state
        if (allowed) one.admitted += 1
      }
    }
    wrong += Math.abs(deciders[0]!.admitted - deciders[1]!.admitted)
  }
  return `${percent(wrong / requests)} of ${requests} requests admitted too many or too few`
}

async function leases(): Promise<string> {
  const world = { isolates: 20, colos: 10, rps: 20_000, seconds: 2 }
  const lease = { max: 50, ttl: '1s' } as const
  const way = { name: 'with leases', batching: true, denialCache: true, lease }
  const { over, under, calls } = await simulate(world, way, server)
  return `${over} requests over, ${percent(under)} of the quota unused, ${digits(calls)} calls per decision`
}

/** A limit of three times the requests of users, who leave half of it to others. The others send twelve times as many. */
async function surge(): Promise<string> {
  const sluice = createSluice({
    ...{ namespace: 'surge', clientAddress: 'socket', deadline },
    policies: [
      {
        ...{ name: 'service', key: 'global', algorithm: 'fixed-window' },
        ...{ limit: 1_200, window: '10m' },
        reserve: [{ match: { header: { 'x-kind': 'ahead' } }, share: 0.5 }],
      },
    ],
    accept: 'global-key',
  })
  const admitted = { user: 0, ahead: 0 }
  const send = async (kind: keyof typeof admitted) => {
    const request = new Request('https://service.example/', { headers: { 'x-kind': kind } })
    const { allowed } = await sluice.check(request, { env })
    if (allowed) admitted[kind] += 1
  }
  for (let tick = 0; tick < 400; tick += 1)
    await Promise.all([...Array.from({ length: 12 }, () => send('ahead')), send('user')])
  return `${percent(admitted.user / 400)} for users, ${percent(admitted.ahead / 4_800)} for the others`
}

/** 16 callers of an origin with 50 requests a second, for 6 s. */
async function refusals(): Promise<string> {
  const countWith = async (call: (send: () => Promise<Response>) => Promise<unknown>) => {
    const origin = await limitedOrigin({ requests: 50, tokens: 1e9 })
    const end = Date.now() + 6_000
    const send = () => fetch(origin.url, { method: 'POST', body: '{}' })
    await each(16, async () => {
      while (Date.now() < end) await call(send)
    })
    origin.close()
    return origin.arrivals.filter(({ status }) => status === 429).length
  }
  const backoff = await countWith(async (send) => {
    for (let attempt = 0; ; attempt += 1) {
      const response = await send()
      await response.arrayBuffer()
      if (response.status !== 429) return
      await sleep(Math.random() * 100 * 2 ** Math.min(attempt, 6))
    }
  })
  const policies = [
    { name: 'requests', algorithm: 'token-bucket', limit: 50, window: '1s', burst: 5 } as const,
  ]
  let paced: ReturnType<typeof outbound> | undefined
  const ours = await countWith(async (send) => {
    paced ??= outbound(() => send(), { policies, deadline, env })
    await (await paced('https://origin.example/', { method: 'POST', body: '{}' })).arrayBuffer()
  })
  return `−${percent(1 - ours / backoff)} (${ours} instead of ${backoff})`
}

/** 500 streams at once, each with 58 to 175 tokens, of which 175 are charged before it begins. */
async function tokens(): Promise<string> {
  const quota = limits(
    { tokens: { algorithm: 'fixed-window', limit: 10_000, window: '10m', deadline } },
    { env, namespace: 'streams' },
  )
  const random = createRandom(2)
  let used = 0
  await each(500, async () => {
    const cost = 58 + Math.floor(random() * 118)
    const spend = await quota.limit('tokens', 'team', { cost: 175 })
    if (!spend.allowed) return
    await sleep(50 + random() * 200)
    used += cost
    await spend.settle({ cost })
  })
  return `${digits(used / 10_000)} × the budget`
}

async function regions(): Promise<string> {
  const region = () =>
    limits({ key: { limit: 4, window: '10m', deadline } }, { env, namespace: 'regions' })
  const admitted = [0, 0]
  for (const [index, quota] of [region(), region()].entries())
    for (let sent = 0; sent < 4; sent += 1)
      if ((await quota.limit('key', 'one')).allowed) admitted[index]! += 1
  return `${admitted[0]! + admitted[1]!} of 8`
}

async function batching(): Promise<string> {
  const world = { isolates: 10, colos: 10, rps: 10_000, seconds: 1 }
  const way = (batching: boolean) => ({ name: '', batching, denialCache: true })
  const never = await simulate(world, way(false), server)
  const batched = await simulate(world, way(true), server)
  const saved = percent(1 - batched.calls / never.calls)
  return `p50 +${digits(Math.max(0, batched.p50 - never.p50))} ms, ${saved} fewer calls`
}

/** Ten clients call without a pause a server that does 250 operations a second, of 20 ms each, 6 ms away. */
async function waiting(): Promise<string> {
  const goodput = async (wait?: '100ms') => {
    const terms = {
      algorithm: 'token-bucket',
      limit: 250,
      window: '1s',
      burst: 5,
      deadline,
    } as const
    const quota = limits(
      { server: { ...terms, ...(wait && { wait }) } },
      {
        ...{ env, namespace: `server-${wait}`, denialCache: false },
      },
    )
    let done = 0
    const end = Date.now() + 4_000
    await each(10, async () => {
      while (Date.now() < end) {
        const { allowed, retryAfterMs } = await quota.limit('server', 'one')
        await sleep(6 + (allowed ? 20 : (retryAfterMs ?? 0)))
        if (allowed) done += 1
      }
    })
    return done / 4
  }
  const without = await goodput()
  const held = await goodput('100ms')
  const change = held / without - 1
  return `${change < 0 ? '−' : '+'}${percent(Math.abs(change))} (${held.toFixed(0)} instead of ${without.toFixed(0)} a second)`
}

const yardsticks: Yardstick[] = [
  {
    what: 'wrong decisions of a sliding window of two counters',
    published:
      '0.003 % of 400 million requests ([Cloudflare](https://blog.cloudflare.com/counting-things-a-lot-of-different-things/))',
    limits:
      'The log is drawn, with many clients above the limit, and beside an exact count. Theirs is of production.',
    measure: wrongDecisions,
  },
  {
    what: 'over the limit, with quota that instances count by themselves',
    published:
      'about 5 % ([Databricks](https://www.databricks.com/blog/high-performance-ratelimiting-databricks))',
    limits:
      'Virtual time, 20 isolates. A lease never admits too much, so its price is unused quota.',
    measure: leases,
  },
  {
    what: 'availability for users while other requests rise to 12 ×',
    published:
      'above 99.4 % ([Netflix](https://netflixtechblog.com/enhancing-netflix-reliability-with-service-level-prioritized-load-shedding-e735e6ce8f7d))',
    limits:
      'Theirs is a real outage, with a limit of concurrent requests. 20 % of the others passed.',
    measure: surge,
  },
  {
    what: '429s of an upstream, beside exponential backoff',
    published: 'up to −97.3 % ([arXiv 2510.04516](https://arxiv.org/abs/2510.04516))',
    limits: 'Their clients share no store. These are 16 callers of one process and one origin.',
    measure: refusals,
  },
  {
    what: 'tokens of a budget that concurrent streams use',
    published: '6.6 × with 5 streams ([LiteLLM](https://github.com/BerriAI/litellm/issues/18730))',
    limits: '500 streams. The budget is checked there before, and charged after a stream.',
    measure: tokens,
  },
  {
    what: 'admitted in two regions with a limit of 4',
    published: '7 ([LiteLLM](https://github.com/BerriAI/litellm/pull/41221))',
    limits: 'One database for both regions: each decision pays the way to it.',
    measure: regions,
  },
  {
    what: 'what a batch waits',
    published:
      'up to 0.5 ms ([Gubernator](https://github.com/mailgun/gubernator/blob/master/architecture.md))',
    limits: 'Virtual time, 1,000 requests a second in each isolate.',
    measure: batching,
  },
  {
    what: 'goodput of a server that holds requests, and does not refuse them at once',
    published: '+49 % ([FHIR Server](https://github.com/microsoft/fhir-server/pull/1617))',
    limits: 'Theirs are 5 slots, and clients guess when to retry. Here they hear it to the ms.',
    measure: waiting,
  },
]

try {
  const lines: string[][] = []
  for (const { what, published, limits, measure } of yardsticks) {
    console.error(what)
    lines.push([what, published, await measure(), limits])
  }
  console.log(table(['measured', 'published', 'Sluice, here', 'what differs'], lines))
} finally {
  await bridge.close()
  await server.stop()
}
