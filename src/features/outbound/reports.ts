/** Reads what the other side says about its limits in the header fields of a response. */
import { parseDictionary, parseList } from 'structured-headers'

/** One limit as the other side reports it. A number that it does not report is absent. */
export interface Report {
  /** What it counts. */
  kind: 'requests' | 'tokens'
  /** Its window, ms. */
  windowMs?: number
  limit?: number
  /** The units that are left. */
  left?: number
}

/** All reports of a response. Never throws: what is not understood is left out. */
export function reportsOf(headers: Headers): Report[] {
  return [
    ...structured(headers),
    ...separate(headers),
    ...vendor(headers, (name, what) => `x-ratelimit-${what}-${name}`),
    ...vendor(headers, (name, what) => `anthropic-ratelimit-${name}-${what}`),
  ].filter(({ limit, left }) => limit !== undefined || left !== undefined)
}

const wholeOf = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && value.trim() === '' ? Number.NaN : Number(value)
  return value !== null && Number.isFinite(number) && number >= 0 && number < 2 ** 51
    ? Math.floor(number)
    : undefined
}

const kindOf = (name: string): Report['kind'] => (/token/i.test(name) ? 'tokens' : 'requests')

/** `RateLimit` and `RateLimit-Policy` of drafts 7 to 11. */
function structured(headers: Headers): Report[] {
  const field = headers.get('ratelimit')
  const policies = policiesOf(headers.get('ratelimit-policy'))
  if (!field) return []
  const items = attempt(() => parseList(field))
  const reports: Report[] = []
  for (const [name, parameters] of items ?? []) {
    const left = wholeOf(parameters.get('r'))
    if (typeof name === 'string' && left !== undefined) {
      reports.push({ kind: kindOf(name), ...policies.get(name), left })
    }
  }
  if (reports.length > 0) return reports
  // Draft 7 has a dictionary: limit=100, remaining=50, reset=5.
  const dictionary = attempt(() => parseDictionary(field))
  const number = (name: string) => wholeOf(dictionary?.get(name)?.[0])
  const [limit, left] = [number('limit'), number('remaining')]
  if (left === undefined) return []
  const windowMs = [...policies.values()].find((one) => one.limit === limit)?.windowMs
  return [one('requests', limit, left, windowMs)]
}

/** The policies of `RateLimit-Policy` by name: drafts 8 to 11 have "name";q=100;w=60, and draft 7 has 100;w=60. */
function policiesOf(field: string | null): Map<string, Partial<Report>> {
  const policies = new Map<string, Partial<Report>>()
  for (const [item, parameters] of (field && attempt(() => parseList(field))) || []) {
    const limit = wholeOf(typeof item === 'number' ? item : parameters.get('q'))
    const seconds = wholeOf(parameters.get('w'))
    if (limit === undefined) continue
    policies.set(String(item), {
      limit,
      ...(seconds !== undefined && { windowMs: seconds * 1000 }),
    })
  }
  return policies
}

/** `RateLimit-Remaining` of draft 6, and `X-RateLimit-Remaining` of GitHub and many others. */
function separate(headers: Headers): Report[] {
  for (const prefix of ['ratelimit', 'x-ratelimit']) {
    const left = wholeOf(headers.get(`${prefix}-remaining`))
    if (left !== undefined) {
      return [one('requests', wholeOf(headers.get(`${prefix}-limit`)), left)]
    }
  }
  return []
}

/** The fields of OpenAI, Anthropic and those who copy them: one triple for requests, one for tokens. */
const vendor = (headers: Headers, field: (name: string, what: string) => string): Report[] =>
  (['requests', 'tokens'] as const).map((kind) =>
    one(
      kind,
      wholeOf(headers.get(field(kind, 'limit'))),
      wholeOf(headers.get(field(kind, 'remaining'))),
    ),
  )

function one(kind: Report['kind'], limit?: number, left?: number, windowMs?: number): Report {
  return {
    kind,
    ...(limit !== undefined && { limit }),
    ...(left !== undefined && { left }),
    ...(windowMs !== undefined && { windowMs }),
  }
}

function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}

/** The cooldown after a 429 without a time, ms. */
const UNKNOWN_MS = 1_000
/** The longest cooldown, ms. A field of another year is a mistake of the other side. */
const MAX_COOL_MS = 86_400_000

/**
 * How long the other side wants no requests, ms. 0 if it does not say so. Only a 429, and a 403 or a 503 with `Retry-After`, say so: GitHub
 * answers 403 with `X-RateLimit-Remaining: 0`.
 */
export function coolingOf({ status, headers }: Response, now: number): number {
  const isSpent = status === 403 && headers.get('x-ratelimit-remaining') === '0'
  if (status !== 429 && status !== 503 && !(status === 403)) return 0
  const told = toldMs(headers, now, status === 429 || isSpent)
  if (told === undefined) return status === 429 || isSpent ? UNKNOWN_MS : 0
  return Math.min(MAX_COOL_MS, Math.max(0, told))
}

function toldMs(headers: Headers, now: number, isLimited: boolean): number | undefined {
  const exact = wholeOf(headers.get('retry-after-ms')) // OpenAI and Azure
  if (exact !== undefined) return exact
  const after = headers.get('retry-after')
  const seconds = wholeOf(after)
  if (seconds !== undefined) return seconds * 1000
  const date = after === null ? Number.NaN : Date.parse(after)
  if (!Number.isNaN(date)) return date - now
  const reset = isLimited ? wholeOf(headers.get('x-ratelimit-reset')) : undefined
  // Seconds, or the time in seconds since the epoch.
  return reset === undefined ? undefined : reset > 1e9 ? reset * 1000 - now : reset * 1000
}
