/** Ten scenarios of the playground, and what the oracle decides on them. */

import { readConfig } from '../../site/playground/editor/read-config.ts'
import { arrivalsOf } from '../../site/playground/engine/traffic.ts'
import { examples } from '../../site/playground/scenarios.ts'
import type { PageState } from '../../site/playground/state.ts'
import { type Policy, parseConfig } from '../../src/core/config/parse.ts'
import type { StoreState } from '../../src/core/connection/store.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { Model, type ModelLimit } from '../model/model.ts'

const [first] = examples
const own = (policies: string, traffic: Partial<PageState['traffic']>): PageState => ({
  text: `defineConfig({ policies: [${policies}] })`,
  traffic: { ...first!.traffic, ...traffic },
  log: '',
})

export const scenarios: Record<string, PageState> = {
  ...Object.fromEntries(
    examples.map(({ name, text, traffic }) => [name, { text, traffic, log: '' }]),
  ),
  'many clients and a cost': own(
    `{ name: 'units', limit: 30, window: '30s', cost: 4 }, { name: 'all', limit: 200, window: '1m', key: 'global' }`,
    { pattern: 'clients', requests: 150, clients: 12, lengthMs: 90_000 },
  ),
  'a bucket with a burst, in a flood': own(
    `{ name: 'bucket', algorithm: 'token-bucket', limit: 7, window: '10s', burst: 13, cost: 2 }`,
    { pattern: 'flood', requests: 180, clients: 5, lengthMs: 60_000 },
  ),
}

/** One limit of an answer, as far as both sides report it. During a ban the denial cache repeats the quota as it was. */
export type Compared = Pick<StoreState, 'allowed' | 'retryAfterMs'> & {
  policy: string
  remaining?: number
  resetAfterMs?: number
}

export interface Answer {
  allowed: boolean
  /** The states of the policies that apply. */
  states: Compared[]
}

export const comparable = (
  allowed: boolean,
  states: readonly (StoreState & { policy: string })[],
): Answer => ({
  allowed,
  // The denial cache repeats only the limits that refuse.
  states: states
    .filter((state) => allowed || !state.allowed)
    .map(({ policy, allowed, retryAfterMs, bannedForMs, remaining, resetAfterMs }) => ({
      policy,
      allowed,
      retryAfterMs,
      ...(bannedForMs === undefined && { remaining, resetAfterMs }),
    })),
})

const applies = ({ match }: Policy, { method, url }: { method: string; url: string }) =>
  (!match.method || match.method.includes(method)) &&
  (!match.path || match.path.includes(new URL(url).pathname))

/** Decides the traffic of a scenario by the oracle. */
export function onModel({ text, traffic }: PageState): Answer[] {
  const { policies } = parseConfig(readConfig(text).value, defaultFields)
  const model = new Model()
  const ends: { at: number; limits: ModelLimit[] }[] = []
  return arrivalsOf(traffic, policies[0]!).map((arrival, index) => {
    const used = policies.filter((policy) => applies(policy, arrival))
    const limits = used.map(
      (terms): ModelLimit => ({
        subject: terms.key[0]!.source === 'global' ? 'global' : arrival.ip,
        terms,
        cost: typeof terms.cost === 'object' ? (terms.cost.otherwise ?? 1) : terms.cost,
        slot: `slot-${index}`,
        ...(terms.penalty && { penalty: terms.penalty }),
      }),
    )
    for (const end of ends.filter(({ at }) => at <= arrival.at)) {
      model.decide([{ mode: 'refund', limits: end.limits }], end.at)
      ends.splice(ends.indexOf(end), 1)
    }
    const states = model.decide([{ mode: 'take', limits }], arrival.at).states[0]!
    const allowed = states.every((state) => state.allowed)
    const slots = limits.filter(({ terms }) => terms.algorithm === 'concurrency')
    if (allowed && slots.length > 0) {
      ends.push({ at: arrival.at + arrival.durationMs, limits: slots })
    }
    return comparable(
      allowed,
      states.map((state, n) => ({ ...state, policy: used[n]!.name })),
    )
  })
}
