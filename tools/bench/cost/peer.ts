import { Ratelimit } from '@upstash/ratelimit'
import type { Call } from '../server.ts'
import { type Contender, LIMIT } from './contender.ts'

type Limiter = ConstructorParameters<typeof Ratelimit>[0]['limiter']

const limiters = {
  'fixed window': Ratelimit.fixedWindow(LIMIT, '1 d'),
  'sliding window': Ratelimit.slidingWindow(LIMIT, '1 d'),
  // One token at a time, at the average rate of the others: 100 per day.
  'token bucket': Ratelimit.tokenBucket(1, '864 s', LIMIT),
}

/** The public API of `@upstash/ratelimit`, with a client that forwards its scripts. */
function limiter(send: (call: Call) => Promise<unknown>, algorithm: Limiter, prefix?: string) {
  const redis = {
    evalsha: () => Promise.reject(new Error('NOSCRIPT')), // so that it sends the script with EVAL
    eval: (script: string, keys: string[], args: unknown[]) =>
      send({ script, keys, args: args.map(String) }),
  }
  return new Ratelimit({
    redis: redis as unknown as ConstructorParameters<typeof Ratelimit>[0]['redis'],
    limiter: algorithm,
    ephemeralCache: false, // measure Redis, not the cache
    timeout: 0,
    ...(prefix && { prefix }),
  })
}

/** @param algorithms several algorithms get different prefixes, since they would otherwise share counters */
function contender(name: string, algorithms: Limiter[]): Contender {
  const prefixes = algorithms.length > 1 ? ['fixed', 'sliding', 'bucket'] : []
  return {
    by: '@upstash/ratelimit',
    algorithm: name,
    decisions: 1,
    async ask(send, { client, units = 1, peek, at }) {
      let admitted = true
      for (const [index, algorithm] of algorithms.entries()) {
        const prefix = prefixes[index] && `@upstash/ratelimit:per-ip-${prefixes[index]}`
        const limits = limiter(send, algorithm, prefix)
        await atTime(at, async () => {
          if (peek) await limits.getRemaining(client)
          else admitted = (await limits.limit(client, { rate: units })).success && admitted
        })
      }
      return admitted
    },
  }
}

/** Runs `work` with another time. The peer uses the clock of this process. */
async function atTime(at: number | undefined, work: () => Promise<void>): Promise<void> {
  const { now } = Date
  if (at !== undefined) Date.now = () => at
  try {
    await work()
  } finally {
    Date.now = now
  }
}

export const peer: Contender[] = [
  ...Object.entries(limiters).map(([name, algorithm]) => contender(name, [algorithm])),
  contender('three limits: fixed, sliding, bucket', Object.values(limiters)),
]
