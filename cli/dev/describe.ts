/** Describes a configuration for `sluice dev`. */

import { databasesOf } from '../../src/core/config/feature.ts'
import type { Finding } from '../../src/core/config/findings.ts'
import type { ConfigOptions, PolicyOptions } from '../../src/core/config/options.ts'
import { type Policy, parseConfig } from '../../src/core/config/parse.ts'
import type { Condition } from '../../src/core/config/schema/condition.ts'
import type { KeyPart } from '../../src/core/config/schema/key.ts'
import { labelOf } from '../../src/core/program/key.ts'
import { inGateway } from '../../src/features/in-gateway.ts'
import { lint } from '../../src/lint/lint.ts'

/** Plain data, since one process sends it to another. */
export interface Description {
  /** One row for each policy, with the columns of `POLICY_COLUMNS`. */
  policies: string[][]
  shards: string[]
  /** False if the configuration has a store without a database: `durableObjects()`. */
  hasDatabase: boolean
  /** Variables that the configuration names. */
  variables: string[]
  /** Example requests. */
  tries: Try[]
  /** An example request for the decision API. */
  ask: { policy: string; key: unknown } | undefined
  /** A request, and how often to send it to use up the smallest quota. */
  flood: { count: number; path: string } | undefined
  /** What the linter finds. The origin is not checked: `sluice dev` provides one. */
  findings: Finding[]
}

/** The description of a project without sluice.config.ts. */
export const NO_CONFIGURATION: Description = {
  policies: [],
  shards: [],
  hasDatabase: true,
  variables: [],
  tries: [],
  ask: undefined,
  flood: undefined,
  findings: [],
}

export const POLICY_COLUMNS = ['policy', 'limit', 'algorithm', 'counted by', 'applies to']

export interface Try {
  policy: string
  method: string
  path: string
  headers: string[]
}

export function describe(options: ConfigOptions): Description {
  const config = parseConfig(options, inGateway)
  const { policies, use, apiKeys } = config
  const plain = policies.filter(({ match }) => isPlain(match))
  const smallest = plain
    .filter(
      ({ match, algorithm, distinct }) =>
        algorithm !== 'concurrency' && !distinct && !isWrite(match),
    )
    .sort((a, b) => a.limit - b.limit)[0]
  const example = policies.find(({ key }) => key.every(({ source }) => source !== 'function'))
  return {
    policies: policies.map((policy, index) => rowOf(policy, options.policies[index]!)),
    hasDatabase: config.store?.own === undefined,
    shards: databasesOf(config).filter((name) => name !== undefined),
    variables: [...use.flatMap(({ variables = [] }) => variables), apiKeys.known].filter(
      (name) => name !== undefined,
    ),
    tries: plain.slice(0, 3).map(tryOf),
    ask: example && { policy: example.name, key: keyOf(example.key) },
    flood:
      smallest && smallest.limit <= 100
        ? { count: Math.ceil(smallest.limit * 1.2), path: pathOf(smallest.match) }
        : undefined,
    findings: lint(options),
  }
}

/** True if a policy applies to a simple request with curl from this machine. */
const isPlain = ({ country, ip, header }: Condition) =>
  !country &&
  !ip &&
  (header ?? []).every(({ values }) => values?.every((one) => !one.includes('*')) ?? true)

const isWrite = ({ method }: Condition) => method !== undefined && !method.includes('GET')

/** An example path: `/users/1` for `/users/:id`, `/api/x` for `/api/*`. */
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

function rowOf(policy: Policy, { window }: PolicyOptions) {
  const { name, limit, claim, algorithm, plan, key, match, mode, distinct } = policy
  const span = typeof window === 'number' ? `${window} ms` : window
  const size =
    algorithm === 'concurrency'
      ? `${limit} in flight`
      : `${limit} ${distinct ? `different ${labelOf(distinct)} ` : ''}per ${span}`
  const plans = Object.entries(plan?.limits ?? {}).map(([name, size]) => `${name} ${size}`)
  return [
    name,
    [
      size,
      ...(claim ? [`(claim ${claim.claim}: up to ${claim.max})`] : []),
      ...(plan ? [`(plans of ${labelOf(plan.key)}: ${plans.join(', ')})`] : []),
    ].join(' '),
    algorithm,
    key.map(labelOf).join(' + '),
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
  const text = words.join(' ') || 'all requests'
  return not ? `${text}, not ${not.map(conditionText).join(', not ')}` : text
}
