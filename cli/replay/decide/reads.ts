/**
 * What policies and lists read of a request. Their own compiled functions run on a request that records each property they read, so
 * that there is no second list of properties. Each comparison runs alone, because one that fails ends the others.
 */
import type { Config, Policy } from '../../../src/core/config/parse.ts'
import type { Condition } from '../../../src/core/config/schema/condition.ts'
import type { KeyPart } from '../../../src/core/config/schema/key.ts'
import { compileCondition } from '../../../src/core/program/condition.ts'
import { compileKey, labelOf } from '../../../src/core/program/key.ts'
import { pathSources } from '../../../src/core/program/paths.ts'
import { apiKeySource, clientValues, sources } from '../../../src/core/program/source.ts'
import { RequestView } from '../../../src/core/request/view.ts'

/** A property that a part of a configuration reads. */
export interface Read {
  /** The part, such as `its match`. */
  part: string
  /** A property of `RequestView`, `header:<name>`, or one that no view has. */
  property: string
}

/** The fields that read nothing of a request or response, and `settles`, which follows from others. */
type Blind =
  | ('name' | 'tag' | 'unit' | 'mode' | 'accept' | 'refusal')
  | ('limit' | 'windowMs' | 'calendar' | 'align' | 'burst' | 'burstIsLimit' | 'limits' | 'planName')
  | ('penalty' | 'overrides' | 'settles' | 'lease' | 'deadlineMs' | 'onStoreError' | 'localShare')
type BlindCost = 'body' | 'graphql' | 'cut' | 'max' | 'otherwise' // `usesBody` stands for the first two

/** What each other field reads. A new field of the schema is a type error here. */
const readers: { [Field in Exclude<keyof Policy, Blind>]: (value: Policy[Field]) => Read[] } = {
  algorithm: (name) => (name === 'concurrency' ? [{ part: 'it', property: 'duration' }] : []),
  usesBody: (uses) => (uses ? [{ part: 'it', property: 'body' }] : []),
  match: (match) => conditionReads('its match', match),
  key: (key) => keyReads('its key', key),
  onMissingKey: (other) =>
    typeof other === 'object' ? keyReads('its onMissingKey', other.key) : [],
  distinct: (part) => (part ? keyReads('its distinct', [part]) : []),
  plan: (plan) => (plan ? keyReads('its plan', [plan.key]) : []),
  claim: (claim) => (claim ? [{ part: 'its limit', property: 'token' }] : []),
  cost: (cost) => all(costReaders, cost),
  reserve: (rules) => rules.flatMap((rule) => conditionReads('its reserve', rule.condition)),
  wait: (ms) => (ms === undefined ? [] : [{ part: 'its wait', property: 'turn' }]),
  countOnly: (statuses) => (statuses ? [{ part: 'its countOnly', property: 'status' }] : []),
}

type Cost = Policy['cost']
const costReaders: { [Field in Exclude<keyof Cost, BlindCost>]: (value: Cost[Field]) => Read[] } = {
  rules: (rules) => rules.flatMap((rule) => conditionReads('its cost', rule.condition)),
  header: (name) =>
    name === undefined ? [] : [{ part: `its cost by ${name}`, property: 'proxy-token' }],
  response(name) {
    if (name === undefined) return []
    const property = name === 'bytes' ? 'response-body' : `response-header:${name}`
    return [{ part: 'its cost', property }]
  },
  usage: (paths) => (paths ? [{ part: 'its cost', property: 'response-body' }] : []),
}

const all = <Value extends object>(readers: object, value: Value): Read[] =>
  Object.entries(readers).flatMap(([field, read]) => read(value[field as keyof Value]))

export const policyReads = (policy: Policy): Read[] => all(readers, policy)

/** All that the policies and the lists read. */
export const configReads = ({ policies, allow, deny }: Config): Read[] => [
  ...policies.flatMap(policyReads),
  ...[...allow, ...deny].flatMap(({ condition }) => conditionReads('it', condition)),
]

export const conditionReads = (part: string, { not = [], ...fields }: Condition): Read[] => [
  ...Object.entries(fields).flatMap(([field, value]) =>
    (Array.isArray(value) ? value.map((one) => [one]) : [value]).flatMap((one) =>
      recorded(part, compileCondition({ [field]: one }, anyCase)),
    ),
  ),
  ...not.flatMap((other) => conditionReads(part, other)),
]

const keyReads = (who: string, key: KeyPart[]): Read[] =>
  key.flatMap((part) =>
    recorded(`${who} ${labelOf(part)}`, (view) =>
      compileKey([part], [], anyCase, {
        claims: async () => Reflect.get(view, 'token'),
        apiKey: async () => Reflect.get(view, 'api-key'),
        onKeyError: () => undefined,
        sources: { ...sources, ...clientValues, ...pathSources, ...apiKeySource },
      })(view),
    ),
  )

const anyCase = { caseSensitivePaths: false }
const runtime = { env: {}, context: undefined, waitUntil: () => {} }

/** Records what a function reads. */
function recorded(part: string, run: (view: RequestView) => unknown): Read[] {
  const properties = new Set<string>()
  const recording = <Target extends object>(target: Target, known: object): Target =>
    new Proxy(target, {
      get(_, name) {
        if (Object.hasOwn(known, name)) return Reflect.get(known, name)
        properties.add(String(name))
        // A key function of the configuration must not run without its context.
        if (name === 'context') throw new Error('There is no context.')
        return Reflect.get(target, name, target)
      },
    })
  const request = new Request('https://unknown.invalid/')
  const headers = {
    get(name: string) {
      // A log has no other spelling of a name, such as `x_plan` after `x-plan`.
      const isOther = /[_.]/.test(name) && properties.has(`header:${name.replace(/[_.]/g, '-')}`)
      if (!isOther) properties.add(`header:${name}`)
      return null
    },
  }
  const view = recording(new RequestView(request, runtime, anyCase, () => undefined), {
    request: recording(request, { headers }),
    pathsBy: () => [''], // the part names `path` before
    message: undefined, // `usesBody` says whether a policy reads it
    omitted: undefined, // only a described request omits a part
  })
  try {
    Promise.resolve(run(view)).catch(() => {})
  } catch {}
  return [...properties].map((property) => ({ part, property }))
}
