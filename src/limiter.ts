import type { Decision, LimitState } from './decision.ts'
import { compile, type Descriptor } from './descriptor.ts'
import { StoreError } from './errors.ts'
import type { Config, Policy } from './policy.ts'
import type { RowState, Store, StoreRequest } from './store/store.ts'
import type { NameSubject } from './subject.ts'

/** What a limiter reaches the outside through. */
export interface LimiterParts {
  store: Store
  nameSubject: NameSubject
  /** Told of every decision that the store could not make. */
  onStoreError: (error: StoreError) => void
}

/** Compiles policies into `decide`: which policies a request meets, whose quotas, one call to the store. */
export function createLimiter({
  policies,
}: Pick<Config, 'policies'>): (request: Request, parts: LimiterParts) => Promise<Decision> {
  const describe = compile(policies)
  return async (request, { store, nameSubject, onStoreError }) => {
    const descriptors = describe(request)
    if (descriptors.length === 0) {
      return { allowed: true, reason: 'no-policy', retryAfterMs: 0, limits: [] }
    }
    try {
      const rows = await Promise.all(
        descriptors.map(async (descriptor) => ({
          ...descriptor,
          subject: await nameSubject(descriptor.partitionKey),
        })),
      )
      // Two groups: a shadow policy never refuses for the others, nor they for it.
      const groups = (['enforce', 'shadow'] as const)
        .map((mode) => rows.filter(({ policy }) => policy.mode === mode))
        .filter((group) => group.length > 0)
      const reply = await store.decide(
        groups.map((group): StoreRequest => ({ mode: 'take', rows: group })),
      )
      const states = new Map(
        groups.flatMap((group, g) => group.map((row, r) => [row.policy, reply.requests[g]![r]!])),
      )
      return verdict(
        descriptors.map((descriptor) => limitState(descriptor, states.get(descriptor.policy)!)),
      )
    } catch (error) {
      onStoreError(
        error instanceof StoreError ? error : new StoreError('internal', (error as Error)?.name),
      )
      return withoutStore(descriptors.map(({ policy }) => policy))
    }
  }
}

function limitState({ policy, cost }: Descriptor, row: RowState): LimitState {
  const { name, mode, limit, windowMs } = policy
  return { policy: name, mode, limit, windowMs, cost, ...row }
}

function verdict(limits: LimitState[]): Decision {
  const refusals = limits.filter(({ mode, allowed }) => mode === 'enforce' && !allowed)
  if (refusals.length === 0)
    return { allowed: true, reason: 'within-limit', retryAfterMs: 0, limits }
  const waits = refusals.map(({ retryAfterMs }) => retryAfterMs)
  const retryAfterMs = waits.includes(null) ? null : Math.max(...(waits as number[]))
  return { allowed: false, reason: 'limited', retryAfterMs, limits }
}

function withoutStore(policies: Policy[]): Decision {
  const denied = policies.some(
    ({ mode, onStoreError }) => mode === 'enforce' && onStoreError === 'deny',
  )
  return {
    allowed: !denied,
    reason: 'store-error',
    retryAfterMs: denied ? null : 0,
    limits: [],
  }
}
