/** Commits before `use`: how their limiters are made, and what has changed on purpose since, which a run leaves out. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inGateway } from '../../src/core/config/needs.ts'
import type { Drawn, Use } from './configs.ts'
import type { Played, Side } from './side.ts'

type Fields = Record<string, unknown>

const IN_CORE = ['bans', 'concurrency', 'headerSets', 'live', 'plans', 'shield', 'slidingLog']
/** Features that were fields of the configuration. */
const FIELDS = ['bodies', 'jwt', 'leases', 'observe', 'overrides', 'refusals', 'shards']

export async function loadSideBeforeUse(name: string, folder: string): Promise<Side> {
  const from = (path: string) => import(pathToFileURL(join(folder, 'src', path)).href)
  const { createSluice } = await from('gateway/sluice.ts')
  const { createGateway } = await from('gateway/gateway.ts')
  const features = new Map<string, (...options: unknown[]) => object>()
  for (const field of FIELDS) features.set(field, (await from(`${field}/index.ts`))[field])
  return {
    name,
    features: new Set([...FIELDS, ...IN_CORE]),
    create({ host, config, use }, namespace) {
      const byDefault = host === 'gateway' ? inGateway.map((feature): Use => [feature]) : []
      const fields = [...byDefault, ...use]
        .filter(([feature]) => features.has(feature))
        .map(([feature, ...options]) => [feature, features.get(feature)!(...options)])
      const whole = { ...config, namespace, ...Object.fromEntries(fields) }
      return host === 'app' ? createSluice(whole) : createGateway(whole)
    },
    since: { restrict, restrictRequest, restrictResult },
  }
}

/** Replaces the members of a value and of all objects and lists in it. */
function replaced(value: unknown, change: (member: unknown, name: string) => unknown): unknown {
  const each = (member: unknown, name: string) => replaced(change(member, name), change)
  if (Array.isArray(value)) return value.map((member) => each(member, ''))
  if (Object(value) !== value || typeof value === 'function') return value
  return Object.fromEntries(Object.entries(value!).map(([key, one]) => [key, each(one, key)]))
}

const has = (value: unknown, name: string) => Object(value)[name] !== undefined

/** Since then a client that is known to be refused gets its refusal before its body is read. */
const readsBody = (policies: unknown) =>
  /"body":(?!\{"(text|json)")|"body:/.test(JSON.stringify(policies))

function restrict(drawn: Drawn): void {
  for (const name of ['config', 'live'] as const) {
    const known = replaced(drawn[name], withoutNew) as Drawn['live']
    const policies = known.policies.map((policy) => restrictedPolicy(policy, drawn.host))
    drawn[name] = { ...known, policies }
  }
  // A batch waits for 1 ms instead of 2.
  drawn.config.batching = false
  if (readsBody([drawn.config.policies, drawn.live])) drawn.config.denialCache = false
}

/** Replaces what earlier commits do not know. */
function withoutNew(value: unknown, name: string): unknown {
  if (has(value, 'digest')) return 'header:x-user'
  if (name === 'refusal' && value === 'json-rpc') return undefined
  if (name !== 'cost') return value
  const { response, usage } = Object(value)
  if (response === 'bytes' || typeof usage === 'object') return { response: 'x-cost' }
  // Without `otherwise` a request reserves `max` instead of one unit.
  return usage === undefined ? value : { otherwise: 1, ...(value as Fields) }
}

function restrictedPolicy(policy: Fields, host: Drawn['host']): Fields {
  const { algorithm, limit, limits, overrides, countOnly, cost, onStoreError = 'local' } = policy
  const isRefunded = countOnly !== undefined || has(cost, 'response') || has(cost, 'usage')
  const isSized = limits || overrides || typeof limit === 'object'
  const isBucket = algorithm === 'token-bucket' || algorithm === 'gcra'
  return {
    ...policy,
    ...(readsBody(policy) && policy.onMissingKey === 'refuse' && { onMissingKey: 'share' }),
    // An app refuses it also in a live document.
    ...(host === 'app' && { check: undefined }),
    // A bucket gets no refund under a slower plan than that of its last charge.
    ...(isBucket &&
      isSized &&
      (isRefunded || host === 'gateway') && { algorithm: 'sliding-window', burst: undefined }),
    // An isolate that counts by itself knows of its own refunds.
    ...(isRefunded &&
      onStoreError === 'local' &&
      algorithm !== 'concurrency' && { onStoreError: 'allow', localShare: undefined }),
  }
}

function restrictRequest(text: string, { config: { clientAddress } }: Drawn): string {
  // A described path with a dot segment is refused.
  const sent = JSON.parse(text.includes('/_sluice/') ? text.replaceAll('/b;x/..', '') : text)
  // A request of a trusted proxy without the header counts as the address of its connection.
  if (has(clientAddress, 'header')) sent.headers['x-real-ip'] ??= '203.0.113.9'
  if (has(clientAddress, 'forwardedFor')) sent.headers['x-forwarded-for'] ??= '203.0.113.9'
  return JSON.stringify(sent)
}

function restrictResult({ answers, log, ...rest }: Played, { use }: Drawn): Played {
  // The number or the text of these lines has changed. With shards each database has lines of its own.
  const changed = use.some(([feature]) => feature === 'shards')
    ? /"(no-address|live-refused|store-error|breaker-\w+)"/
    : /"(no-address|live-refused)"/
  return {
    ...rest,
    log: log.filter((line) => !changed.test(line)),
    // The decision API writes a decision by `onStoreError` in another order of members.
    answers: answers.map((answer) =>
      'body' in answer &&
      typeof answer.body === 'string' &&
      /^[[{].*"store-error"/.test(answer.body)
        ? { ...answer, body: JSON.parse(answer.body) }
        : answer,
    ),
  }
}
