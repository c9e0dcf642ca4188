import type { Decision } from '../core/base/decision.ts'
import { Answered } from '../limits/answered.ts'
import { checkCost, optionsOf } from '../limits/check.ts'
import type { LimitDecision } from '../limits/door.ts'

/** A decision of the API, or the fallback in its place. */
export class Decided extends Answered implements LimitDecision {
  readonly #headers: Headers | undefined
  readonly #settle: ((used: number | undefined) => Promise<void>) | undefined
  #isSettled = false

  /**
   * @param headers those of the answer. Undefined for a fallback
   * @param settle tells the API what was used. Undefined for a decision that has charged nothing
   */
  constructor(
    decision: Decision,
    headers?: Headers,
    settle?: (used: number | undefined) => Promise<void>,
  ) {
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
