import { idempotency, operators } from '../core/connection/upstash/script-text.ts'

/** The parts of the general script that only the decision API needs. */
export const apiLua: readonly string[] = [operators, idempotency]
