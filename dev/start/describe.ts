/** What `npm start` has to know and to print of a configuration. */

import type { ConfigOptions, PolicyOptions } from '../../src/config/options.ts'
import { type Policy, parseConfig } from '../../src/config/parse.ts'
import type { Condition } from '../../src/config/schema/condition.ts'
import type { KeyPart } from '../../src/config/schema/key.ts'
import { labelOf } from '../../src/match/key.ts'

/** Plain data, which goes from one process to another. */
export interface Description {
  /** Rows of a table: name, quota, algorithm, key, requests. */
  policies: string[][]
  shards: string[]
  /** Variables that the configuration names. */
  variables: string[]
  /** Requests to try: a method, a path, fields, and what it is about. */
  tries: Try[]
  /** A policy and a key, for the decision API. */
  ask: { policy: string; key: unknown } | undefined
  /** How many requests use up the smallest quota, and the request. */
  flood: { count: number; path: string } | undefined
}

export interface Try {
  policy: string
  method: string
  path: string
  headers: string[]
}

export function describe(options: ConfigOptions): Description {
  const config = parseConfig(options)
  const { policies, jwt, apiKeys, shards = [] } = config
  const plain = policies.filter(({ match }) => isPlain(match))
  const smallest = plain
    .filter(({ match, algorithm }) => algorithm !== 'concurrency' && !writes(match))
    .sort((a, b) => a.limit - b.limit)[0]
  const asked = policies.find(({ key }) => key.every(({ source }) => source !== 'function'))
  return {
    policies: policies.map((policy, index) => rowOf(policy, options.policies[index]!)),
    shards,
    variables: [jwt?.secret, apiKeys.known].filter((name) => name !== undefined),
    tries: plain.slice(0, 3).map(tryOf),
    ask: asked && { policy: asked.name, key: keyOf(asked.key) },
    flood:
      smallest && smallest.limit <= 100
        ? { count: Math.ceil(smallest.limit * 1.2), path: pathOf(smallest.match) }
        : undefined,
  }
}

/** Whether a request by curl on this machine can meet it. */
const isPlain = ({ country, ip, header }: Condition) =>
  !country &&
  !ip &&
  (header ?? []).every(({ values }) => values?.every((one) => !one.includes('*')) ?? true)

const writes = ({ method }: Condition) => method !== undefined && !method.includes('GET')

/** `/users/:id` as `/users/1`, `/api/*` as `/api/x`. */
const pathOf = ({ path }: Condition) => (path?.[0] ?? '/').replace(/:\w+/g, '1').replace(/\*$/, 'x')

const tryOf = ({ name, match, key }: Policy): Try => ({
  policy: name,
  method: match.method?.[0] ?? 'GET',
  path: pathOf(match),
  headers: [
    ...(match.host ? [`Host: ${match.host[0]!.replace('*', 'a')}`] : []),
    ...(match.header ?? []).map(({ name, values }) => `${name}: ${values?.[0] ?? '1'}`),
    ...key.flatMap((part) => (part.source === 'header' ? [`${part.name}: alice`] : [])),
    ...key.flatMap((part) => (part.source === 'cookie' ? [`Cookie: ${part.name}=alice`] : [])),
    ...(key.some(({ source }) => source === 'api-key') ? ['X-Api-Key: …'] : []),
    ...(key.some(({ source }) => source === 'jwt') ? ['Authorization: Bearer …'] : []),
  ],
})

function keyOf(key: KeyPart[]): unknown {
  const values = key.map(({ source }) => (source === 'ip' ? '203.0.113.7' : `a-${source}`))
  return values.length === 1 ? values[0] : values
}

function rowOf({ name, limit, algorithm, plan, key, match, mode }: Policy, written: PolicyOptions) {
  const { window } = written
  const span =
    typeof window === 'number' ? `${window} ms` : /^[a-z]/.test(window) ? `a ${window}` : window
  const size = algorithm === 'concurrency' ? `${limit} at once` : `${limit} in ${span}`
  const plans = Object.entries(plan?.limits ?? {}).map(([name, size]) => `${name} ${size}`)
  return [
    name,
    plan ? `${size} (${plans.join(', ')} by ${labelOf(plan.key)})` : size,
    algorithm,
    `by ${key.map(labelOf).join(' + ')}`,
    `${conditionText(match)}${mode === 'shadow' ? ' (shadow)' : ''}`,
  ]
}

function conditionText({ method, host, path, header, country, ip, not }: Condition): string {
  const networks = ip && (ip.length > 2 ? `${ip.length} networks` : ip.join(', '))
  const words = [
    method?.filter((name) => name !== 'HEAD' || method.length === 1).join(', '),
    host?.join(', '),
    path?.join(', '),
    header?.map(({ name, values }) => `${name}: ${values?.join(' or ') ?? 'any'}`).join(', '),
    country && `from ${country.join(', ')}`,
    networks && `from ${networks}`,
  ].filter((text) => text !== undefined)
  const text = words.join(' ') || 'every request'
  return not ? `${text}, not ${not.map(conditionText).join(', not ')}` : text
}
