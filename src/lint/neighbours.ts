/** What to write instead of the options of other rate limiters, and of values as they write them. */

/** @param byNames what to write instead of the names of a group, which are separated by spaces */
const hints = (byNames: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(byNames).flatMap(([names, hint]) =>
      names.split(' ').map((name) => [name, hint]),
    ),
  )

/** Options of express-rate-limit, hono-rate-limiter, rate-limiter-flexible, @upstash/ratelimit, Nest, Fastify, nginx and Cloudflare. */
const inPolicy = hints({
  'max maxRequests points requests requests_per_period tokens':
    'Write limit: the units in a window',
  'maxTokens capacity': "Write burst, with algorithm: 'token-bucket'",
  refillRate: "Write limit and window, with algorithm: 'token-bucket'",
  rate: "Write limit and window, such as limit: 10, window: '1s'",
  'windowMs timeWindow interval ttl': "Write window: '1m', or a number of milliseconds",
  duration: "Write window: '1m'. A number without a unit is in milliseconds, and not in seconds",
  period: "Write window: '1m'. A number without a unit is in milliseconds",
  'keyGenerator identifier': "Write key: 'ip', another key part, or in an app a function",
  'keyPrefix prefix': 'Write namespace beside policies',
  limiter: "Write algorithm: 'sliding-window', limit and window",
  path: "Write match: { path: '/api/*' }",
  method: "Write match: { method: 'POST' }",
  host: "Write match: { host: 'api.example.com' }",
  skip: 'Write allow beside policies, or match: { not: … }',
  skipSuccessfulRequests: "Write countOnly: '400-599'",
  skipFailedRequests: "Write countOnly: '100-399'",
  requestWasSuccessful: 'Write countOnly with the statuses that count',
  'blockDuration mitigation_timeout': "Write penalty: { after: 3, within: '1m', ban: '1h' }",
  weight: 'Write cost: the units that a request takes',
  dryRun: "Write mode: 'shadow'",
  passOnStoreError: "Write onStoreError: 'allow'",
})

const inConfig = hints({
  'policy rules': 'Write policies: a list of policies',
  limits: 'Write policies: a list. Only limits() of sluice/limits takes limits, without policies',
  'limit max window windowMs points duration':
    "Write policies: [{ name: 'per-ip', limit: 100, window: '1m' }]",
  keyGenerator: "Write key: 'ip' in a policy, another key part, or in an app a function",
  key: "Write key: 'ip' in a policy, or another key part",
  match: 'Write match in a policy',
  standardHeaders: "Write headers: 'draft-11', 'draft-7', 'draft-6' or 'off'",
  legacyHeaders: "Write headers: { prefix: 'X-RateLimit-', reset: 'epoch' }",
  'skip allowList whitelist': 'Write allow: the requests that no policy limits',
  'blacklist denyList': 'Write deny: the requests that get 403',
  'prefix keyPrefix': 'Write namespace',
  shards: 'Write use: [cluster()] with a Redis Cluster, or store: durableObjects()',
  'redis client': "Write store: redis(client), with import { redis } from 'sluice/redis'",
  ephemeralCache: 'Write denialCache: true or false',
  analytics: "Write use: [observe({ to: 'log' })], with import { observe } from 'sluice/features'",
  timeout: 'Write deadline',
  trustProxy: 'Write clientAddress: { forwardedFor: { trustedProxies: 1 } }',
  handler: 'Write refusal: { status, body, headers }, or in an app a function',
  message: 'Write refusal: { body: { text: … } }',
  statusCode: 'Write refusal: { status: … }',
})

const hintIn = (names: Record<string, string>, name: string) =>
  Object.hasOwn(names, name) ? `${names[name]}.` : ''

/** Fields in hints that limits by name and key do not have. */
const OF_REQUEST = /\b(key|match|countOnly|allow|deny|refusal|headers|clientAddress|policies:)/

/**
 * The hint for an unknown field that another rate limiter has, by its path as written in code. Empty without one.
 * @param isOfLimits true in a configuration of limits
 */
export function neighbourField(path: string, isOfLimits = false): string {
  const [, inList, name] = /^(policies(?:\[\d+\])?\.|limits\..+\.)?([A-Za-z_]+)$/.exec(path) ?? []
  if (name === undefined) return ''
  const hint = hintIn(inList ? inPolicy : inConfig, name) || hintIn(inConfig, inList ? name : '')
  if (!isOfLimits) return hint
  return OF_REQUEST.test(hint)
    ? "limits() decides by a name and a key, without a request: limits: { invites: { limit: 20, window: '1d' } }."
    : hint.replace('policies', 'limits')
}

/** The algorithms as others name them, in small letters alone. */
const ALGORITHMS = hints({
  fixed: 'fixed-window',
  'rollingwindow sliding slidingwindowcounter': 'sliding-window',
  'slidingwindowlog log': 'sliding-log',
  bucket: 'token-bucket',
  'funnel leakybucket cell': 'gcra',
  'semaphore concurrent inflight': 'concurrency',
})

export function algorithmHint(text: string): string {
  const name = text.toLowerCase().replace(/[^a-z]/g, '')
  return Object.hasOwn(ALGORITHMS, name) ? `Write '${ALGORITHMS[name]}'.` : ''
}

const CALENDAR = ['day', 'week', 'month']

/** The hint for a duration in words, such as `'1 minute'` or `'per day'`. Empty without one. */
export function durationHint(text: string): string {
  const [, count = '1', word = ''] =
    /^(?:per |an? |every )?(\d+(?:\.\d+)?)? ?-?([a-z]+?)s?$/i.exec(text.trim()) ?? []
  const name = word.toLowerCase()
  if (name === 'month') {
    return "Write window: 'month' for calendar months, with algorithm: 'fixed-window', or '30d'."
  }
  const isUnit = /^(ms?|msec|millisecond|s|sec|second|min|minute|h|hr|hour|d|day|w|week)$/.test(
    name,
  )
  if (!isUnit) return /^\d+$/.test(text) ? `Write '${text}s', or the number in milliseconds.` : ''
  const unit = /^(ms|milli)/.test(name) ? 'ms' : name[0]
  const calendar = CALENDAR.includes(name) && count === '1'
  return `Write '${count}${unit}'${calendar ? `, or '${name}' for calendar ${name}s with algorithm: 'fixed-window'` : ''}.`
}

export function headerSetHint(text: string): string {
  if (/^draft-?(8|9|10)$/i.test(text) || /^draft-ietf/i.test(text)) {
    return `Write 'draft-11': it has the fields RateLimit and RateLimit-Policy in the same syntax.`
  }
  return ''
}
