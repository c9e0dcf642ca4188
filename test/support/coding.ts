/** Calls of the general script with the parts of all features, and its replies. */

import { codec } from '../../cli/replay/decide/script-parts.ts'
import type { Idempotency, StoreRequest } from '../../src/core/connection/store.ts'
import { decode as decodeWith } from '../../src/core/connection/upstash/reply.ts'
import { encode as encodeWith } from '../../src/core/connection/upstash/script.ts'

export const encode = (
  requests: StoreRequest[],
  now?: number,
  idempotency?: Idempotency,
  namespace?: string,
) => encodeWith(requests, now, idempotency, namespace, codec)

export const decode = (reply: unknown, requests: StoreRequest[], idempotency?: Idempotency) =>
  decodeWith(reply, requests, idempotency, codec)
