/** Meters a response without a gateway: with a store in memory, and with a body that the test writes. */
import type { PolicyOptions } from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import type { Store } from '../../src/core/connection/store.ts'
import type { PolicyLimit } from '../../src/core/decide/limit.ts'
import { type Charges, takeMore } from '../../src/core/decide/settle.ts'
import { bodies } from '../../src/features/bodies/index.ts'
import { meterBody } from '../../src/features/bodies/meter.ts'
import { storeOf } from './store-of.ts'

export interface Streamed {
  /** The response that the client gets. */
  response: Response
  /** Adds to the body of the origin. */
  write: (part: string | Uint8Array) => void
  /** Ends the body of the origin, or breaks it off with an error. */
  close: (error?: Error) => void
  /** The units that each reserved part keeps, in the order of the calls. */
  kept: Promise<number[]>
  /** True once the origin's body is cancelled. */
  isCancelled: () => boolean
  /** How often the origin was asked for more. */
  pulls: () => number
  charges: Charges
}

export const event = (data: unknown) =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`

type CostFields = Extract<PolicyOptions['cost'], { usage?: unknown }>

/** A limit of a policy with this cost. */
export function limitWith(cost: CostFields, policy: Partial<PolicyOptions> = {}): PolicyLimit {
  const { policies } = parseConfig({
    policies: [{ name: 'tokens', limit: 10_000, window: '1h', key: 'global', cost, ...policy }],
    use: [bodies()],
  })
  const parsed = policies[0]!
  return {
    terms: parsed,
    subject: 'subject',
    partitionKey: [],
    cost: parsed.cost.otherwise,
  }
}

const unused = storeOf(() => Promise.reject(new Error('unexpected call')))

/** Meters a response whose body the test writes. Undefined if the body has no cost. */
export function streamed(
  limit: PolicyLimit,
  headers: Record<string, string>,
  {
    store = unused,
    maxBytes = 1_000,
    isSent = true,
  }: { store?: Store; maxBytes?: number; isSent?: boolean } = {},
): Streamed | undefined {
  const { promise: kept, resolve } = Promise.withResolvers<number[]>()
  let controller: ReadableStreamDefaultController<Uint8Array>
  let isCancelled = false
  let pulls = 0
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given
    },
    pull() {
      pulls += 1
    },
    cancel() {
      isCancelled = true
    },
  })
  const charges: Charges = new Map([[limit, { decidedAt: 1 }]])
  const response = meterBody(
    new Response(body, { headers }),
    {
      limits: [limit],
      isSent,
      take: (more: PolicyLimit) => takeMore(more, charges, store, () => {}),
      end: (units) => resolve([...units.values()]),
    },
    maxBytes,
  )
  if (!response) return undefined
  return {
    response,
    write: (part) =>
      controller.enqueue(typeof part === 'string' ? new TextEncoder().encode(part) : part),
    close: (error) => (error ? controller.error(error) : controller.close()),
    kept,
    charges,
    isCancelled: () => isCancelled,
    pulls: () => pulls,
  }
}
