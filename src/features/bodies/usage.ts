/** Finds the numbers of `cost.usage` in the events of a stream or in a JSON response. */
import type { PolicyLimit } from '../../core/decide/limit.ts'

/** Objects in which APIs wrap the usage of a stream: OpenAI's Responses API (`response`), and Anthropic's `message_start` (`message`). */
const WRAPPERS = ['response', 'message']

/** The units of one limit that a response has used. */
export class Usage {
  readonly #paths: string[][]
  /** The last number at each path. */
  readonly #numbers: (number | undefined)[] = []
  /** Data events since the last number. */
  #events = 0
  /** All data events. */
  counted = 0
  readonly #limit: Pick<PolicyLimit, 'policy' | 'cost'>

  constructor(limit: Pick<PolicyLimit, 'policy' | 'cost'>) {
    this.#limit = limit
    this.#paths = limit.policy.cost.usage!.map((path) => path.split('.'))
  }

  /** False if a text has no number for this limit. Most events have none, so they are not parsed. A name may be written with escapes. */
  mayBeIn(text: string): boolean {
    return this.#paths.some((path) => text.includes(`"${path.at(-1)}"`)) || /\\u00[2-7]/.test(text)
  }

  /** Counts a data event, whose numbers replace those of earlier events. */
  count(event: unknown): void {
    this.#events += 1
    this.counted += 1
    this.read(event)
  }

  /** Reads the numbers in a JSON value. */
  read(value: unknown): void {
    for (const [index, path] of this.#paths.entries()) {
      const found = [[], ...WRAPPERS.map((name) => [name])]
        .map((wrapper) => at(value, [...wrapper, ...path]))
        .find(isUnits)
      if (found === undefined) continue
      this.#numbers[index] = found
      this.#events = 0
    }
  }

  /** The sum of the last numbers in units. Undefined if there was none. */
  get #known(): number | undefined {
    const numbers = this.#numbers.filter(isUnits)
    if (numbers.length === 0) return undefined
    // Without the rounding, 0.07 × 100 would be 8 units.
    const { scale = 1 } = this.#limit.policy.cost
    const units = numbers.reduce((sum, one) => sum + one, 0) * scale
    return Math.ceil(Number(units.toPrecision(12)))
  }

  /** True if the last data event had a number. */
  get isKnown(): boolean {
    return this.#events === 0
  }

  /** The units while the body passes: the last usage, and one unit for each data event since. */
  get soFar(): number {
    return (this.#known ?? 0) + this.#events
  }

  /**
   * The cost of the response.
   * @param isWhole false if the body has not passed completely
   */
  cost(isWhole: boolean): number {
    const { cost: reserved, policy } = this.#limit
    // The origin may have done all of the work for a client that hangs up, so the reservation stays.
    const units = isWhole
      ? (this.#known ?? Math.max(this.#events, reserved))
      : Math.max(this.soFar, reserved)
    return Math.min(units, policy.cost.max!)
  }
}

const isUnits = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY

function at(value: unknown, path: string[]): unknown {
  let found = value
  for (const name of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = (found as Record<string, unknown>)[name]
  }
  return found
}

/** Parses JSON. Returns `undefined` for another text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
