import type { Policy } from '../config/parse.ts'
import { labelOf } from '../match/key.ts'
import type { LimitRow, Store } from '../store/store.ts'
import type { Call } from './call.ts'
import { DEADLINE_MS } from './status.ts'

/** What is told of a policy. */
export interface PolicyReport {
  name: string
  algorithm: Policy['algorithm']
  limit: number
  windowMs: number
  burst: number
  mode: Policy['mode']
  /** The parts of its key. */
  key: string[]
  onStoreError: Policy['onStoreError']
  /** Whether keys of it can be banned. */
  bans: boolean
  /** Who answers for it now; of several databases, for the keys of those that fail. */
  decidedBy: 'store' | Policy['onStoreError']
}

/** How a database answers. */
export interface StoreReport {
  status: 'ok' | 'failing'
  code?: string
  roundTripMs?: number
}

/** `GET /_sluice/v1/policies`: the policies that hold now, and whether each database answers. */
export async function listPolicies({ rules, parts }: Call): Promise<Response> {
  const { policies } = rules.config
  const row = { subject: await parts.nameSubject([['probe', 'probe']]), policy: nobodys, cost: 0 }
  const reports = await Promise.all(
    parts.databases.map(async ({ name, store }) => ({ name, ...(await storeReport(store, row)) })),
  )
  // Of several the first that fails, or else the slowest.
  const bySpeed = reports.toSorted((a, b) => (b.roundTripMs ?? 0) - (a.roundTripMs ?? 0))
  const { name, ...store } = reports.find(({ status }) => status === 'failing') ?? bySpeed[0]!
  return Response.json(
    {
      policies: policies.map((policy): PolicyReport => {
        const { name, algorithm, limit, windowMs, burst, mode, onStoreError } = policy
        return {
          name,
          algorithm,
          limit,
          windowMs,
          burst,
          mode,
          key: policy.key.map(labelOf),
          onStoreError,
          bans: policy.penalty !== undefined,
          decidedBy: store.status === 'ok' ? 'store' : onStoreError,
        }
      }),
      store,
      ...(reports.length > 1 && { shards: reports }),
    },
    { headers: { 'Cache-Control': 'no-store' } },
  )
}

const nobodys = {
  tag: 'probe',
  algorithm: 'fixed-window',
  limit: 1,
  windowMs: 1000,
  burst: 1,
  align: 'first-request',
  localShare: 1,
} as const

/** By a look at nobody's quota. */
async function storeReport(store: Store, row: LimitRow): Promise<StoreReport> {
  const start = Date.now()
  try {
    await store.decide([{ mode: 'peek', rows: [row] }], { deadlineMs: DEADLINE_MS })
    return { status: 'ok', roundTripMs: Date.now() - start }
  } catch (error) {
    return { status: 'failing', code: (error as { code?: string }).code ?? 'internal' }
  }
}
