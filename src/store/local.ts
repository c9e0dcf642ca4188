import { algorithms, type State, type Terms } from '../algorithms/index.ts'
import type { LimitRow, RowState, Store, StoreRequest } from './store.ts'

/** States kept at most; beyond it the least recently charged are forgotten. */
const MAX_STATES = 10_000
/** Numbers kept at most in all of them (8 bytes each): a sliding log has one for every unit, and an isolate only 128 MB. */
const MAX_NUMBERS = 1_000_000

/**
 * A limiter in this isolate's own memory, for while Redis is away: the same algorithms over a share of each limit.
 * Its bound: every isolate by itself admits at most that share (and at least one unit) of the algorithm's own bound, and
 * forgets what it counted when it ends, or when more than 10,000 clients (or a million units of sliding logs) are busy at
 * once. Nothing is given back, so slots are not counted at all, nobody is banned, and no call is remembered to be decided once.
 * @param clock ms since the epoch
 */
export function createLocalStore(clock: () => number = Date.now): Store {
  const states = new Map<string, { state: State; runOut: number }>()
  let numbers = 0

  function forget(key: string) {
    numbers -= states.get(key)?.state.numbers.length ?? 0
    states.delete(key)
  }

  function ask({ subject, policy, period, ...row }: LimitRow, now: number) {
    if (policy.algorithm === 'concurrency') return { row: untouched(policy.limit, row.cost) }
    const key = keyOf(subject, policy)
    const kept = states.get(key)
    const live = kept && kept.runOut > now ? kept : undefined
    const { terms, cost } = shareOf(policy, row.cost)
    const { state, ...outcome } = algorithms[policy.algorithm](
      now,
      { ...terms, period },
      cost,
      live?.state,
    )
    const charged = state && { key, entry: { state, runOut: now + outcome.resetAfterMs } }
    const clamp = (wait: number) => (live && !state ? Math.min(wait, live.runOut - now) : wait)
    const clamped: RowState = {
      ...outcome,
      retryAfterMs: outcome.retryAfterMs === null ? null : clamp(outcome.retryAfterMs),
      resetAfterMs: clamp(outcome.resetAfterMs),
      nextAfterMs: clamp(outcome.nextAfterMs),
    }
    return { row: clamped, charged }
  }

  function decide({ mode, rows }: StoreRequest, now: number): RowState[] {
    if (mode === 'reset') for (const { subject, policy } of rows) forget(keyOf(subject, policy))
    const asked = rows.map((row) => ask(row, now))
    if (mode !== 'take' || !asked.every(({ row }) => row.allowed)) {
      return asked.map(({ row, charged }, index) =>
        charged ? { ...ask({ ...rows[index]!, cost: 0 }, now).row, allowed: row.allowed } : row,
      )
    }
    for (const { charged } of asked) {
      if (!charged) continue
      forget(charged.key) // so that it goes to the end, away from the oldest
      states.set(charged.key, charged.entry)
      numbers += charged.entry.state.numbers.length
      while (states.size > MAX_STATES || numbers > MAX_NUMBERS) forget(states.keys().next().value!)
    }
    return asked.map(({ row }) => row)
  }

  const store: Store = {
    async decide(requests, { now = clock() } = {}) {
      let passed = true // whether the last request that is not a shadow did: else its shadows only look
      const told = requests.map((request) => {
        if (request.mode === 'shadow') {
          return decide({ ...request, mode: passed ? 'take' : 'look' }, now)
        }
        const rows = decide(request, now)
        passed = request.mode === 'take' && rows.every(({ allowed }) => allowed)
        return rows
      })
      return { now, requests: told }
    },
    decideEach: (lists, options) =>
      Promise.all(lists.map((requests) => store.decide(requests, options))),
  }
  return store
}

const keyOf = (subject: string, { tag }: LimitRow['policy']) => `${tag} ${subject}`

/** How a limit stands of which nothing is counted. */
const untouched = (limit: number, cost: number): RowState => ({
  allowed: cost <= limit,
  remaining: limit,
  retryAfterMs: cost <= limit ? 0 : null,
  resetAfterMs: 0,
  nextAfterMs: 0,
})

/** The terms of a policy cut to its `localShare`, in whole units, at least one; and a cost that fits the policy, cut to fit them. */
function shareOf(
  { algorithm, limit, burst, windowMs, align, localShare }: LimitRow['policy'],
  cost: number,
) {
  const cut = (units: number) => Math.max(1, Math.floor(units * localShare))
  const terms: Terms = { limit: cut(limit), burst: cut(burst), window: windowMs, align }
  const [whole, share] =
    algorithm === 'token-bucket' || algorithm === 'gcra'
      ? [burst, terms.burst]
      : [limit, terms.limit]
  return { terms, cost: cost > whole ? cost : Math.min(cost, share) }
}
