/** Finds the numbers of `cost.usage` in the events of a stream or in a JSON response. */
import type { PolicyLimit } from '../../core/decide/limit.ts'
import { memberOf } from './json.ts'

/** Objects in which APIs wrap the usage of a stream: OpenAI's Responses API (`response`), and Anthropic's `message_start` (`message`). */
const WRAPPERS = ['response', 'message']

/** The units of one limit that a response has used. */
export class Usage {
  /** The path of each number, and the units for each 1 of it. */
  readonly #weights: [path: string[], weight: number][]
  readonly #numbers: (number | undefined)[] = []
  /** Data events since the last number. */
  #events = 0
  counted = 0
  readonly #limit: Pick<PolicyLimit, 'terms' | 'cost'>

  constructor(limit: Pick<PolicyLimit, 'terms' | 'cost'>) {
    this.#limit = limit
    this.#weights = limit.terms.cost.usage!.map(([path, weight]) => [path.split('.'), weight])
  }

  /** False if a text has no number for this limit. Most events have none, so they are not parsed. A name may be written with escapes. */
  mayBeIn(text: string): boolean {
    const isNamed = ([path]: [string[], number]) => text.includes(`"${path.at(-1)}"`)
    return this.#weights.some(isNamed) || /\\u00[2-7]/.test(text)
  }

  /** Counts a data event, whose numbers replace those of earlier events. */
  count(event: unknown): void {
    this.#events += 1
    this.counted += 1
    this.read(event)
  }

  read(value: unknown): void {
    for (const [index, [path]] of this.#weights.entries()) {
      const found = [[], ...WRAPPERS.map((name) => [name])]
        .map((wrapper) => [...wrapper, ...path].reduce(memberOf, value))
        .find(isUnits)
      if (found === undefined) continue
      this.#numbers[index] = found
      this.#events = 0
    }
  }

  /** The weighted sum of the last numbers in units, at least 0. Undefined if there was none. */
  get #known(): number | undefined {
    if (!this.#numbers.some(isUnits)) return undefined
    const parts = this.#weights.map(([, weight], index) => (this.#numbers[index] ?? 0) * weight)
    const size = parts.reduce((sum, part) => sum + Math.abs(part), 0)
    // Products and sums have errors in their last bits. Without the deduction, 0.07 × 100 would be 8 units.
    const units = parts.reduce((sum, part) => sum + part, 0) - size * ROUNDING
    return Math.max(0, Math.ceil(units))
  }

  /** True if the last data event had a number. */
  get isKnown(): boolean {
    return this.#events === 0
  }

  /** The units while the body passes: the last usage, and one unit for each data event since. */
  get soFar(): number {
    return (this.#known ?? 0) + this.#events
  }

  /** @param isWhole false if the body has not passed completely */
  cost(isWhole: boolean): number {
    const { cost: reserved, terms } = this.#limit
    // The origin may have done all of the work for a client that hangs up, so the reservation stays.
    const units = isWhole
      ? (this.#known ?? Math.max(this.#events, reserved))
      : Math.max(this.soFar, reserved)
    return Math.min(units, terms.cost.max!)
  }
}

/** The largest error of a sum, as a part of its terms. */
const ROUNDING = 1e-14

const isUnits = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY
