/** Random configurations with every field that a policy has, and the requests of a log. */

import fc from 'fast-check'
import type { Fact, LogLine } from '../../cli/replay/line.ts'
import { ConfigError } from '../../src/core/base/errors.ts'
import type {
  ConfigOptions,
  KeySource,
  MatchOptions,
  PolicyOptions,
} from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import type { CostOptions } from '../../src/core/config/schema/cost.ts'
import { bodies } from '../../src/features/bodies/index.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { graphqlCost } from '../../src/features/graphql/graphql.ts'
import { jwt } from '../../src/features/jwt/index.ts'
import { distinct, leases, overrides, refusals } from './features.ts'
import * as random from './random-conditions.ts'

/** What the configurations may need. */
export const plugins = {
  apiKeys: { known: 'API_KEYS' },
  use: [
    jwt({ secret: 'JWT_SECRET', algorithms: ['HS256'] }),
    bodies({ graphql: graphqlCost() }),
    distinct(),
    leases(),
    overrides(),
    refusals(),
  ],
}

/** Mostly one of the values, sometimes one that no log can tell. */
const mostly = <Value>(usual: fc.Arbitrary<Value>, rare: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: rare })

/** Only the fields that logs can have, unless drawn with the rest. */
const usualMatch = random.match.filter(
  (match) => !/"(botScore|ja4|verifiedBot)"/.test(JSON.stringify(match)),
)
export const matches: fc.Arbitrary<MatchOptions> = mostly(
  usualMatch,
  fc.oneof(
    random.match,
    fc.constantFrom<MatchOptions>({ body: { a: true } }, { jwt: false }, { apiKey: true }),
  ),
)

export const keySources: KeySource[] = [
  'ip',
  { ip: { v4: 24, v6: 32 } },
  'path',
  'method',
  'host',
  'country',
  'asn',
  'colo',
  'global',
  'path:x',
  'header:x-a',
  'header:host',
  'cookie:c',
  'query:a',
]
export const rareSources: KeySource[] = [
  'ja4',
  'verifiedBot',
  'api-key',
  'jwt:sub',
  'body:a',
  () => 'function',
]
const source = mostly(fc.constantFrom(...keySources), fc.constantFrom(...rareSources))
const key = fc.oneof(source, fc.array(source, { minLength: 1, maxLength: 2 }))

const units = fc.integer({ min: 0, max: 3 })
const rules = fc.array(
  fc.tuple(matches, units).map(([match, cost]) => ({ ...match, cost })),
  { maxLength: 3 },
)
const path = 'usage.total'

/** Each field of a cost. */
export const costFields: {
  [Field in keyof Required<CostOptions>]: fc.Arbitrary<CostOptions[Field]>
} = {
  rules,
  otherwise: units,
  max: fc.integer({ min: 3, max: 5 }),
  header: fc.constant('x-cost'),
  response: fc.constant('x-price'),
  usage: fc.constantFrom<CostOptions['usage']>(path, { [path]: 0.5 }),
  cut: fc.boolean(),
  body: fc.constant('tokens'),
  graphql: fc.constant(true as const),
}
const { rules: _, otherwise, max, ...unknownCosts } = costFields
const cost: fc.Arbitrary<PolicyOptions['cost']> = mostly(
  fc.oneof(units, rules, fc.record({ rules, otherwise, max }, { requiredKeys: [] })),
  fc.record({ ...unknownCosts, rules, otherwise, max }, { requiredKeys: [] }),
)

const buckets = ['token-bucket', 'gcra'] as const

type Fields = { [Field in keyof Required<PolicyOptions>]: fc.Arbitrary<PolicyOptions[Field]> }

/** Each field of a policy. */
export const policyFields: Fields = {
  name: fc.constant('p'),
  algorithm: mostly(
    fc.constantFrom('fixed-window', 'sliding-window', 'sliding-log', ...buckets),
    fc.constant('concurrency'),
  ),
  limit: mostly<PolicyOptions['limit']>(
    fc.integer({ min: 1, max: 5 }),
    fc.constant({ claim: 'rate', max: 9, otherwise: 5 }),
  ),
  window: fc.constantFrom('1s', '3s', '10s', '1m', 'day', 'week', 'month'),
  timeZone: fc.constantFrom('UTC', 'Etc/GMT-12', 'Asia/Kolkata'),
  align: fc.constantFrom('first-request', 'clock'),
  burst: fc.integer({ min: 1, max: 4 }),
  plan: fc.constantFrom<PolicyOptions['plan']>('header:x-b', 'country', {
    key: 'header:x-a',
    table: 'customers',
  }),
  limits: fc.constant({ pro: 6, free: 1, seed: 3, DE: 2 }),
  key,
  onMissingKey: fc.oneof(
    fc.constantFrom<'share' | 'skip' | 'refuse'>('share', 'skip', 'refuse'),
    fc.record({ key }),
  ),
  distinct: source,
  match: matches,
  cost,
  reserve: fc.array(
    fc.record(
      { match: matches, share: fc.constantFrom(0, 0.2, 0.5, 0.9) },
      { requiredKeys: ['share'] },
    ),
    { minLength: 1, maxLength: 2 },
  ),
  mode: fc.constantFrom('enforce', 'shadow'),
  countOnly: fc.constantFrom<PolicyOptions['countOnly']>(401, '4xx', ['2xx', 503]),
  penalty: fc.constantFrom<PolicyOptions['penalty']>('manual', {
    after: 2,
    within: '5s',
    ban: '3s',
    max: '10s',
  }),
  overrides: fc.boolean(),
  lease: fc.constant({ max: 2, ttl: '1s' }),
  deadline: fc.constant('20s'),
  onStoreError: fc.constantFrom('allow', 'deny', 'local'),
  localShare: fc.constant(0.5),
  refusal: fc.constant({ status: 418, body: { text: 'no' } }),
  wait: fc.constant('2s'),
  accept: fc.constant([]),
}

const required = ['name', 'algorithm', 'limit', 'window', 'key']

/** A policy with some of the fields. */
const policy: fc.Arbitrary<PolicyOptions> = fc.record(policyFields).chain((all) =>
  fc
    .subarray(
      Object.keys(all).filter((name) => !required.includes(name)),
      { minLength: 2, maxLength: 8 },
    )
    .map((names) => {
      const chosen = new Set([...required, ...names, ...(names.includes('plan') ? ['limits'] : [])])
      return Object.fromEntries(
        Object.entries(all).filter(([name]) => chosen.has(name)),
      ) as unknown as PolicyOptions
    }),
)

const entry = mostly(usualMatch, random.match).filter((match) => Object.keys(match).length > 0)

/** Removes what the schema refuses: the fields of a policy that contradict others. */
function valid(options: ConfigOptions, attempts = 20): ConfigOptions {
  try {
    parseConfig({ ...options, ...plugins }, defaultFields)
    return options
  } catch (error) {
    if (!(error instanceof ConfigError) || attempts === 0) throw error
    const policies = options.policies.map((one) => ({ ...one }))
    for (const { path } of error.problems) {
      const [, index = '', field = ''] = /^policies\[(\d+)\]\.(\w+)/.exec(path) ?? []
      const policy = policies[Number(index)]!
      if (field === 'window') policy.window = '3s'
      else if (field === 'limit') policy.limit = 3
      else if (field === 'plan') delete policy.limits
      else Reflect.deleteProperty(policy, field)
    }
    return valid({ ...options, policies }, attempts - 1)
  }
}

export const configs: fc.Arbitrary<ConfigOptions> = fc
  .record({
    policies: fc
      .array(policy, { minLength: 1, maxLength: 4 })
      .map((all) => all.map((one, index) => ({ ...one, name: `p${index}` }))),
    deny: fc.array(entry, { maxLength: 2 }).map((all) => all.slice(1)),
    allow: fc.array(
      fc
        .tuple(entry, fc.constantFrom({}, { policies: 'p0' }))
        .map(([match, policies]) => ({ ...match, ...policies })),
      { maxLength: 2 },
    ),
    caseSensitivePaths: fc.boolean(),
  })
  .map((all) => valid({ ...all, tables: { customers: { pro: 'pro', freedom: 'free' } } }))

/** What a log may tell. */
export const allFacts: Fact[] = [
  'ip',
  'host',
  'query',
  'status',
  'country',
  'asn',
  'colo',
  'header:x-a',
  'header:x-b',
  'header:cookie',
]

/** Mostly all of them. */
export const facts = mostly(fc.constant(allFacts), fc.subarray(allFacts)).map(
  (some): ReadonlySet<Fact> => new Set(some),
)

/** A request as it arrives at the gateway, and the status that the origin answers with. */
export interface Sent {
  time: number
  url: string
  method: string
  headers: Record<string, string>
  cf: Record<string, unknown>
  status: number
}

const steps = fc.array(
  fc.record({
    waitMs: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 5, arbitrary: fc.integer({ min: 0, max: 700 }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 15_000 }) },
    ),
    index: fc.nat({ max: 2 }),
    status: fc.constantFrom(200, 200, 401, 404, 503),
  }),
  { minLength: 5, maxLength: 25 },
)

/** Few different requests, so that they often meet the same quotas, before and after a midnight of UTC. */
export const traffic: fc.Arbitrary<Sent[]> = fc
  .record({
    requests: fc.array(random.request, { minLength: 3, maxLength: 3 }),
    more: fc.record({
      cookie: fc.constantFrom('', 'c=1', 'c=2; d=3'),
      colo: fc.constantFrom('FRA', 'SJC'),
    }),
    steps,
    before: fc.integer({ min: 0, max: 30_000 }),
  })
  .map(({ requests, more, steps, before }) => {
    let time = Date.UTC(2026, 0, 6) - before
    return steps.map(({ waitMs, index, status }): Sent => {
      const { url, init, circumstances } = requests[index]!
      time += waitMs
      return {
        time,
        url,
        method: init.method,
        headers: { ...init.headers, ...(more.cookie && { cookie: more.cookie }) },
        cf: { ...circumstances.cf, colo: more.colo },
        status,
      }
    })
  })

/** The line of a log that tells these facts. */
export function lineOf(
  { time, url, method, headers, cf, status }: Sent,
  facts: ReadonlySet<Fact>,
): LogLine {
  const { pathname, search, hostname } = new URL(url)
  const { 'cf-connecting-ip': ip, ...others } = headers
  const told = Object.entries(others).filter(([name]) => facts.has(`header:${name}`))
  return {
    time,
    method,
    target: facts.has('query') ? `${pathname}${search}` : pathname,
    ...(facts.has('ip') && { ip }),
    ...(facts.has('host') && { host: hostname }),
    ...(facts.has('status') && { status }),
    ...(facts.has('country') && { country: cf.country as string }),
    ...(facts.has('asn') && cf.asn !== undefined && { asn: `${cf.asn}` }),
    ...(facts.has('colo') && { colo: cf.colo as string }),
    headers: Object.fromEntries(told),
  }
}
