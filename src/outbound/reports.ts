/** Reads what the other side says about its limits in the header fields of a response. */
import { parseDictionary, parseList } from 'structured-headers'
import {
  fieldOf,
  numberOf,
  resetOf,
  retryAfterOf,
  SHORTEST_MS,
  tellsAfter,
} from '../core/base/foreign-wait.ts'

/** One limit as the other side reports it. A number that it does not report is undefined. */
export interface ReportedLimit {
  /** What it counts. */
  kind: 'requests' | 'tokens'
  /** Its window, ms. */
  windowMs?: number | undefined
  limit?: number | undefined
  /** The units that are left. */
  left?: number | undefined
  /** The wait for new units, as `RateLimit` has it. */
  reset?: unknown
}

/** All reports of a response. Never throws: what is not understood is left out. */
export function reportsOf(headers: Headers): ReportedLimit[] {
  return [
    ...structured(headers),
    ...separate(headers),
    ...vendor(headers, (name, what) => `x-ratelimit-${what}-${name}`),
    ...vendor(headers, (name, what) => `anthropic-ratelimit-${name}-${what}`),
  ].filter(({ limit, left }) => limit !== undefined || left !== undefined)
}

const wholeOf = (value: unknown): number | undefined => {
  const number = numberOf(`${value}`)
  return number !== undefined && number < 2 ** 51 ? Math.floor(number) : undefined
}

const kindOf = (name: string): ReportedLimit['kind'] =>
  /token/i.test(name) ? 'tokens' : 'requests'

/** `RateLimit` and `RateLimit-Policy` of drafts 7 to 11. */
function structured(headers: Headers): ReportedLimit[] {
  const field = headers.get('ratelimit')
  const policies = policiesOf(headers.get('ratelimit-policy'))
  const reports: ReportedLimit[] = []
  for (const [name, parameters] of attempt(field, parseList) ?? []) {
    const left = wholeOf(parameters.get('r'))
    if (left === undefined) continue
    const policy = policies.get(String(name))
    reports.push({ kind: kindOf(String(name)), ...policy, left, reset: parameters.get('t') })
  }
  if (reports.length > 0) return reports
  // Draft 7 has a dictionary: limit=100, remaining=50, reset=5.
  const dictionary = attempt(field, parseDictionary)
  const value = (name: string) => dictionary?.get(name)?.[0]
  const [limit, left] = [wholeOf(value('limit')), wholeOf(value('remaining'))]
  if (left === undefined) return []
  const windowMs = [...policies.values()].find((one) => one.limit === limit)?.windowMs
  return [{ kind: 'requests', limit, left, windowMs, reset: value('reset') }]
}

/** The policies of `RateLimit-Policy` by name: drafts 8 to 11 have "name";q=100;w=60, and draft 7 has 100;w=60. */
function policiesOf(field: string | null): Map<string, Partial<ReportedLimit>> {
  const policies = new Map<string, Partial<ReportedLimit>>()
  for (const [item, parameters] of attempt(field, parseList) ?? []) {
    const limit = wholeOf(typeof item === 'number' ? item : parameters.get('q'))
    const seconds = wholeOf(parameters.get('w'))
    if (limit === undefined) continue
    policies.set(String(item), { limit, windowMs: seconds && seconds * 1000 })
  }
  return policies
}

/** `RateLimit-Remaining` of draft 6, and `X-RateLimit-Remaining` of GitHub and many others. */
function separate(headers: Headers): ReportedLimit[] {
  for (const prefix of ['ratelimit', 'x-ratelimit']) {
    const left = wholeOf(fieldOf(headers, `${prefix}-remaining`))
    if (left !== undefined) {
      return [{ kind: 'requests', limit: wholeOf(fieldOf(headers, `${prefix}-limit`)), left }]
    }
  }
  return []
}

/** The fields of OpenAI, Anthropic and those who copy them: one triple for requests, one for tokens. */
const vendor = (headers: Headers, field: (name: string, what: string) => string): ReportedLimit[] =>
  (['requests', 'tokens'] as const).map((kind) => ({
    kind,
    limit: wholeOf(fieldOf(headers, field(kind, 'limit'))),
    left: wholeOf(fieldOf(headers, field(kind, 'remaining'))),
  }))

function attempt<T>(field: string | null, parse: (field: string) => T): T | undefined {
  try {
    return parse(field ?? '')
  } catch {
    return undefined
  }
}

/**
 * The cooldown after a response, in whole ms above 0. 0 if it is no refusal. One is a 429, a 503 with `Retry-After`, and a 403 with it or with
 * `X-RateLimit-Remaining: 0` (GitHub), but no 403 with `Retry-After: 0`, which Confluence sends with other errors too.
 */
export function coolingOf({ status, headers }: Response, now: number): number {
  const field = (name: string) => numberOf(fieldOf(headers, name))
  const isLimited = status === 429 || (status === 403 && field('x-ratelimit-remaining') === 0)
  const isDelayed = status === 503 || (status === 403 && field('retry-after') !== 0)
  if (!isLimited && !(isDelayed && tellsAfter(headers))) return 0
  const told = retryAfterOf(headers, now)
  return (isLimited ? (told ?? resetOf(headers, now, reportsOf(headers))) : told) ?? SHORTEST_MS
}
