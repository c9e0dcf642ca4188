/** Scenarios of the playground, and what the oracle decides on them. */

import { readConfig } from '../../site/playground/editor/read-config.ts'
import { firstOf, parsed, type Setup } from '../../site/playground/engine/door.ts'
import { addressOf, arrivalsOf } from '../../site/playground/engine/traffic.ts'
import { examples } from '../../site/playground/scenarios.ts'
import type { PageState } from '../../site/playground/state.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import type { Policy } from '../../src/core/config/parse.ts'
import type { StoreState } from '../../src/core/connection/store.ts'
import { Model, type ModelLimit } from '../model/model.ts'

const [first] = examples
const own = (policies: string, traffic: Partial<PageState['traffic']>): PageState => ({
  text: `defineConfig({ policies: [${policies}] })`,
  traffic: { ...first!.traffic, ...traffic },
  log: '',
})

export const scenarios: Record<string, PageState> = {
  ...Object.fromEntries(
    examples
      // The oracle has no queue.
      .filter(({ name }) => name !== 'wait')
      .map(({ name, text, traffic }) => [name, { text, traffic, log: '' }]),
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

/** What the text of a scenario describes. */
export function setupOf(text: string): Setup {
  const { value, call } = readConfig(text)
  return (call ? { terms: value, call } : value) as Setup
}

/** The size of the quota of a client, of a policy whose plans are in a table by address. */
function sizeOf({ plan, limits = {}, limit }: Policy, setup: Setup, ip: string): number {
  const { tables = {} } = setup as ConfigOptions
  const name = plan && tables[plan.table!]?.[ip]
  return name ? limits[name]! : limit
}

/** What a response costs, in a policy that reads it there. */
const usedIn = (body: string): number => JSON.parse(body).usage.total_tokens

/** Decides the traffic of a scenario by the oracle. */
export function onModel({ text, traffic }: PageState): Answer[] {
  const setup = setupOf(text)
  const isCall = 'call' in setup
  const { policies } = parsed(setup)
  const model = new Model()
  const ends: { at: number; mode: 'refund' | 'debt'; limits: ModelLimit[] }[] = []
  const nameOf = isCall ? (client: number) => `user-${client + 1}` : addressOf
  return arrivalsOf(traffic, firstOf(setup).policy!, nameOf).map((arrival, index) => {
    const used = isCall ? [firstOf(setup).policy!] : policies.filter((one) => applies(one, arrival))
    const limits = used.map(
      (terms): ModelLimit => ({
        subject: !isCall && terms.key[0]!.source === 'global' ? 'global' : arrival.ip,
        terms: { ...terms, limit: sizeOf(terms, setup, arrival.ip) },
        cost: typeof terms.cost === 'object' ? (terms.cost.otherwise ?? 1) : terms.cost,
        slot: `slot-${index}`,
        ...(terms.penalty && { penalty: terms.penalty }),
      }),
    )
    for (const end of ends.filter(({ at }) => at <= arrival.at)) {
      model.decide([{ mode: end.mode, limits: end.limits }], end.at)
      ends.splice(ends.indexOf(end), 1)
    }
    const states = model.decide([{ mode: 'take', limits }], arrival.at).states[0]!
    const allowed = states.every((state) => state.allowed)
    const at = arrival.at + arrival.durationMs
    const slots = limits.filter(({ terms }) => terms.algorithm === 'concurrency')
    if (allowed && slots.length > 0) ends.push({ at, mode: 'refund', limits: slots })
    const read = limits.filter((_, n) => used[n]!.cost.usage)
    if (allowed && read.length > 0) {
      const more = read.map((one) => ({ ...one, cost: usedIn(arrival.body!) - one.cost }))
      ends.push({ at, mode: 'debt', limits: more })
    }
    return comparable(
      allowed,
      states.map((state, n) => ({ ...state, policy: used[n]!.name })),
    )
  })
}
