import { HELD_MS } from '../core/base/held.ts'
import type { ConfigRule } from './facts.ts'

/** Finds waits in a gateway that only answers calls of the decision API and of forward-auth. */
export const waitsOfCalls: ConfigRule = ({ config: { policies } }) =>
  policies.flatMap(({ name, wait = 0 }, index) =>
    wait > HELD_MS
      ? {
          code: 'wait-of-calls' as const,
          path: `policies[${index}].wait`,
          message: `"${name}" lets a request wait ${wait} ms, but forward-auth waits at most ${HELD_MS} ms, and so does a call of the decision API without waitMs.`,
          hint: `Write wait: '${HELD_MS}ms'. If your callers send waitMs, and wait longer themselves, write accept: 'wait-of-calls'.`,
        }
      : [],
  )
