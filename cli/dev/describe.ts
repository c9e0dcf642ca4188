/** Describes a configuration for `sluice dev`. */
import { spanText } from '../../src/core/base/duration.ts'
import type { Finding } from '../../src/core/config/findings.ts'
import type { ConfigOptions, PolicyOptions } from '../../src/core/config/options.ts'
import { type Config, type Policy, parseConfig } from '../../src/core/config/parse.ts'
import type { Condition } from '../../src/core/config/schema/condition.ts'
import type { KeyPart } from '../../src/core/config/schema/key.ts'
import { labelOf } from '../../src/core/program/key.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { lint } from '../../src/lint/lint.ts'

/** Plain data, since one process sends it to another. */
export interface Description {
  /** One row for each policy, with the columns of `POLICY_COLUMNS`. */
  policies: string[][]
  /** False if the configuration has a store without a database: `durableObjects()`. */
  hasDatabase: boolean
  /** Variables that the configuration names. */
  variables: string[]
  /** Example requests. */
  tries: Try[]
  /** An example request for the decision API. */
  ask: { policy: string; key: unknown } | undefined
  /** A request, and how often to send it to use up the smallest quota. */
  flood: { count: number; request: Try } | undefined
  /** Says which host runs the configuration. Empty without one. */
  judged: string
  /** What the linter finds. The origin is not checked: `sluice dev` provides one. */
  findings: Finding[]
}

/** The description of a project without sluice.config.ts. */
export const NO_CONFIGURATION: Description = {
  policies: [],
  hasDatabase: true,
  variables: [],
  tries: [],
  ask: undefined,
  flood: undefined,
  judged: '',
  findings: [],
}

export const POLICY_COLUMNS = ['policy', 'limit', 'algorithm', 'counted by', 'applies to']

export interface Try {
  policy: string
  method: string
  /** With the query. */
  path: string
  headers: string[]
  /** Fields of a JSON body. */
  body: object | undefined
  /** What the user must write instead of a word of the request. */
  needs: string[]
}

/** @param judged says which host runs the configuration */
export function describe(options: ConfigOptions, judged = ''): Description {
  const config = parseConfig(options, defaultFields)
  const { policies, use, apiKeys } = config
  const plain = policies.filter(({ match }) => isPlain(match))
  const [smallest] = plain
    .map((policy) => ({ policy, request: tryOf(policy, apiKeys) }))
    .filter(({ policy, request }) => isUsedUp(policy) && request.method === 'GET' && !request.body)
    .sort((a, b) => a.policy.limit - b.policy.limit)
  const example = policies.find(({ key }) => key.every(({ source }) => source !== 'function'))
  return {
    policies: policies.map((policy, index) => rowOf(policy, options.policies[index]!)),
    hasDatabase: config.store?.own === undefined,
    variables: [...use.flatMap(({ variables = [] }) => variables), apiKeys.known].filter(
      (name) => name !== undefined,
    ),
    tries: plain.slice(0, 3).map((policy) => tryOf(policy, apiKeys)),
    ask: example && { policy: example.name, key: keyOf(example.key) },
    flood:
      smallest && smallest.policy.limit <= 100
        ? { count: Math.ceil(smallest.policy.limit * 1.2), request: smallest.request }
        : undefined,
    judged,
    findings: lint(options),
  }
}

/** Limits by name and key, for which no request is known. */
export const describeLimits = (
  { policies, use, store }: Config,
  judged: string,
  findings: Finding[],
): Description => ({
  ...NO_CONFIGURATION,
  policies: policies.map(({ name, limit, windowMs, algorithm }) => [
    name,
    algorithm === 'concurrency' ? `${limit} in flight` : `${limit} per ${spanText(windowMs)}`,
    algorithm,
    'the key of the call',
    'calls of limit()',
  ]),
  hasDatabase: store?.own === undefined,
  variables: use.flatMap(({ variables = [] }) => variables),
  judged,
  findings,
})

/** What Cloudflare reports of a client, and its address. */
const FROM_CLOUDFLARE = ['country', 'asn', 'ip', 'ja4', 'verifiedBot', 'botScore'] as const

/** True if curl can send a request from this machine to which a policy applies. */
const isPlain = ({ header, query, body, ...more }: Condition) =>
  FROM_CLOUDFLARE.every((name) => more[name] === undefined) &&
  [header, query, body].every((fields = []) =>
    fields.every(({ values }) => values?.every((one) => !one.includes('*')) ?? true),
  )

/** True if requests that succeed use up the quota of a policy, which then refuses. */
const isUsedUp = ({ algorithm, distinct, countOnly, mode, key }: Policy) =>
  algorithm !== 'concurrency' &&
  !distinct &&
  !countOnly &&
  mode === 'enforce' &&
  key.every(({ source }) => source !== 'function')

/** An example path: `/users/1` for `/users/:id`, `/api/x` for `/api/*`. */
const pathOf = ({ path }: Condition) => (path?.[0] ?? '/').replace(/:\w+/g, '1').replace(/\*$/, 'x')

/** An example of a request to which a policy applies, and that has its key. */
function tryOf({ name: policy, match, key }: Policy, { from, known }: Config['apiKeys']): Try {
  const parts: { source: string; name: string; value: string }[] = []
  const needs: string[] = []
  const add = (source: string, name: string, value: string) => {
    const isThere = parts.some((one) => one.source === source && one.name === name)
    if (!isThere) parts.push({ source, name, value })
  }
  for (const source of ['header', 'query', 'body'] as const) {
    for (const { name, values } of match[source] ?? []) add(source, name, values?.[0] ?? '1')
  }
  for (const part of key) {
    if ('name' in part && part.source !== 'jwt' && part.source !== 'path-parameter') {
      add(part.source, part.name, 'alice')
    }
  }
  if (match.apiKey || key.some(({ source }) => source === 'api-key')) {
    const [place] = from
    if (known) needs.push(`a key of ${known} for KEY`)
    add(place!.source, place!.name, known || match.apiKey ? 'KEY' : 'alice')
  }
  if (match.jwt || key.some(({ source }) => source === 'jwt')) {
    needs.push('a JSON Web Token for TOKEN')
    add('bearer', '', 'TOKEN')
  }
  const of = (source: string) => parts.filter((one) => one.source === source)
  const query = of('query').map(({ name, value }) => `${name}=${encodeURIComponent(value)}`)
  const cookies = of('cookie').map(({ name, value }) => `${name}=${value}`)
  const body = of('body').length > 0 ? bodyOf(of('body')) : undefined
  return {
    policy,
    method: match.method?.[0] ?? (body ? 'POST' : 'GET'),
    path: pathOf(match) + (query.length > 0 ? `?${query.join('&')}` : ''),
    headers: [
      ...(match.host ? [`Host: ${match.host[0]!.replace('*', 'a')}`] : []),
      ...of('header').map(({ name, value }) => `${name}: ${value}`),
      ...(cookies.length > 0 ? [`Cookie: ${cookies.join('; ')}`] : []),
      ...of('bearer').map(({ value }) => `Authorization: Bearer ${value}`),
      ...(body ? ['Content-Type: application/json'] : []),
    ],
    body,
    needs,
  }
}

/** `{ params: { name: 'x' } }` for the path `params.name`. */
function bodyOf(fields: { name: string; value: string }[]): object {
  const body = {}
  for (const { name, value } of fields) {
    const path = name.split('.')
    const last = path.pop()!
    let place: Record<string, unknown> = body
    for (const step of path) {
      place[step] ??= {}
      place = place[step] as Record<string, unknown>
    }
    place[last] = value
  }
  return body
}

function keyOf(key: KeyPart[]): unknown {
  const values = key.map(({ source }) => (source === 'ip' ? '203.0.113.7' : `a-${source}`))
  return values.length === 1 ? values[0] : values
}

function rowOf(policy: Policy, { window }: PolicyOptions) {
  const { name, limit, claim, algorithm, plan, key, match, mode, distinct } = policy
  const span = typeof window === 'number' ? spanText(window) : window
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
