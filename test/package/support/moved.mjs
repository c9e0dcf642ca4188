/** The documented examples of `@upstash/ratelimit`, and the same with Sluice. Prints in JSON what both do. */
import { Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis'
import { createSluice } from 'sluice'
import { limits } from 'sluice/limits'

const redis = Redis.fromEnv({ enableTelemetry: false })

/** A limiter of the library with counters of its own. */
const ratelimit = (prefix, limiter, more) =>
  new Ratelimit({ redis, prefix, limiter, enableTelemetry: false, ...more })

/** Limits with counters of their own. The deadline is long, so that a slow machine causes no store errors. */
const quotaOf = (namespace, terms) => limits(terms, { namespace, deadline: '10s' })

async function results(count, call) {
  const all = []
  for (let index = 0; index < count; index += 1) all.push(await call())
  return all
}

/** The results of calls one after the other, and whether the last one took at least a second. */
async function waited(call) {
  await call()
  const start = Date.now()
  return [await call(), Date.now() - start >= 1000]
}

const hour = { limit: 3, window: '1h' }
const sliding = Ratelimit.slidingWindow(3, '1 h')

/** Each example: with the library, and with Sluice. */
const examples = {
  tiers: [
    async () => {
      const by = {
        free: ratelimit('free', Ratelimit.slidingWindow(2, '1 h')),
        paid: ratelimit('paid', Ratelimit.slidingWindow(4, '1 h')),
      }
      const all = (tier) => results(5, async () => (await by[tier].limit('ann')).success)
      return [await all('free'), await all('paid')]
    },
    async () => {
      const quota = quotaOf('tiers', {
        free: { limit: 2, window: '1h' },
        paid: { limit: 4, window: '1h' },
      })
      const all = (tier) => results(5, async () => (await quota.limit(tier, 'ann')).allowed)
      return [await all('free'), await all('paid')]
    },
  ],
  blockUntilReady: [
    async () => {
      const api = ratelimit('block', Ratelimit.fixedWindow(1, '3 s'))
      await windowOf(3000)
      return waited(async () => (await api.blockUntilReady('ann', 10_000)).success)
    },
    async () => {
      const fixed = { algorithm: 'fixed-window', limit: 1, window: '3s', wait: '10s' }
      const quota = quotaOf('block', { api: fixed })
      return waited(async () => (await quota.limit('api', 'ann')).allowed)
    },
  ],
  'blockUntilReady for too short a time': [
    async () => {
      const api = ratelimit('give-up', Ratelimit.fixedWindow(1, '1 h'))
      await windowOf(3_600_000)
      return results(2, async () => (await api.blockUntilReady('ann', 100)).success)
    },
    async () => {
      const quota = quotaOf('give-up', { api: { limit: 1, window: '1h', wait: '100ms' } })
      return results(2, async () => (await quota.limit('api', 'ann')).allowed)
    },
  ],
  getRemaining: [
    async () => {
      const api = ratelimit('remaining', sliding)
      await api.limit('ann')
      return results(2, async () => (await api.getRemaining('ann')).remaining)
    },
    async () => {
      const quota = quotaOf('remaining', { api: hour })
      await quota.limit('api', 'ann')
      return results(2, async () => (await quota.peek('api', 'ann')).remaining)
    },
  ],
  resetUsedTokens: [
    async () => {
      const api = ratelimit('reset', sliding)
      await results(3, () => api.limit('ann'))
      await api.resetUsedTokens('ann')
      return (await api.limit('ann')).remaining
    },
    async () => {
      const quota = quotaOf('reset', { api: hour })
      await results(3, () => quota.limit('api', 'ann'))
      await quota.reset('api', 'ann')
      return (await quota.limit('api', 'ann')).remaining
    },
  ],
  'custom rates': [
    async () => {
      const api = ratelimit('rate', sliding)
      const rates = [1, 2, 1]
      return results(3, async () => (await api.limit('ann', { rate: rates.shift() })).success)
    },
    async () => {
      const quota = quotaOf('rate', { api: hour })
      const costs = [1, 2, 1]
      const call = () => quota.limit('api', 'ann', { cost: costs.shift() })
      return results(3, async () => (await call()).allowed)
    },
  ],
  'dynamic limits': [
    async () => {
      const api = ratelimit('dynamic', sliding, { dynamicLimits: true })
      await api.setDynamicLimit({ limit: 5 })
      return results(6, async () => (await api.limit('ann')).success)
    },
    async () => {
      const policies = [{ name: 'api', key: 'header:x-user', ...hour }]
      const live = { from: 'redis' }
      const options = { namespace: 'dynamic', clientAddress: 'socket', deadline: '10s' }
      const sluice = createSluice({ ...options, live, policies })
      const changed = [{ ...policies[0], limit: 5 }]
      await redis.set('sluice:dynamic:live', JSON.stringify({ policies: changed }))
      // A process reads the document after its first decision.
      while ((await sluice.peek('api', 'ann')).limit !== 5) {
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      return results(6, async () => (await sluice.limit('api', 'ann')).allowed)
    },
  ],
}

/** Waits for the next window if little is left of this one: the library aligns windows to the clock. */
async function windowOf(ms) {
  const left = ms - (Date.now() % ms)
  const enough = Math.min(2000, ms * 0.7)
  if (left < enough) await new Promise((resolve) => setTimeout(resolve, left + 5))
}

const seen = {}
for (const [name, [library, sluice]] of Object.entries(examples)) {
  seen[name] = { library: await library(), sluice: await sluice() }
}
console.log(JSON.stringify(seen))
