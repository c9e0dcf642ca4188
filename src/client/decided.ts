import type { Decision } from '../core/base/decision.ts'
import { Answered } from '../limits/answered.ts'
import { checkCost, optionsOf } from '../limits/check.ts'
import type { LimitDecision } from '../limits/door.ts'

/** Tells the API what was used. */
type Settle = (used: number | undefined) => Promise<void>

/** A decision of the API, or the fallback in its place. */
export class Decided extends Answered implements LimitDecision {
  /** Undefined for a fallback. */
  readonly #headers: Headers | undefined
  /** Undefined for a decision that has charged nothing. */
  readonly #settle: Settle | undefined
  #isSettled = false

  constructor(decision: Decision, headers?: Headers, settle?: Settle) {
    super(decision, () => 0)
    this.#headers = headers
    this.#settle = settle
  }

  async settle(used?: { cost?: number }): Promise<void> {
    const { cost } = optionsOf<{ cost?: number }>('settle', used)
    checkCost('settle', cost)
    if (this.#isSettled || (cost === undefined && this.slot === undefined)) return
    this.#isSettled = true
    await this.#settle?.(cost)
  }

  fields(): Record<string, string> {
    const fields = [...(this.#headers ?? [])].filter(([name]) => /rate-?limit/.test(name))
    return Object.fromEntries(fields.map(([name, value]) => [titled(name), value]))
  }
}

/** `fetch` writes names in lower case. */
const titled = (name: string) =>
  name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase()).replace('Ratelimit', 'RateLimit')
