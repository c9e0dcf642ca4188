/** Leaves out of configurations what one side accepts and the other refuses: a field that was deleted or added since. */
import { isDeepStrictEqual } from 'node:util'
import type { Drawn } from './configs.ts'
import { ORIGIN } from './configs.ts'
import type { Side } from './side.ts'

type Fields = Record<string, unknown>

/** The paths of the problems of a configuration. Their words may differ. */
export function problemsOf(side: Side, drawn: Drawn): unknown {
  try {
    side.create(drawn, 'unused')
    return undefined
  } catch (error) {
    const { problems, message } = error as Error & { problems?: { path: string }[] }
    return problems ? problems.map(({ path }) => path).sort() : message
  }
}

/** The smallest policy. */
const SMALLEST = { name: 'one', limit: 1, window: '1m', key: 'path' }

export class LeftOut {
  readonly #sides: Side[]
  /** For each value of a field, whether the sides disagree about it. */
  readonly #known = new Map<string, boolean>()
  /** The fields that were left out, and the side that refuses each. */
  readonly fields = new Map<string, string>()

  constructor(sides: Side[]) {
    this.#sides = sides
  }

  /** Takes what only one side accepts out of a configuration and its live document. */
  from(drawn: Drawn): void {
    const { config, live } = drawn
    if (this.#agree(drawn, config) && this.#agree(drawn, live)) return
    for (const { policies, ...fields } of [config, live]) {
      const all = [config, live]
      for (const [name, value] of Object.entries(fields)) {
        if (this.#agreeOn(drawn, name, value, { [name]: value, policies: [SMALLEST] })) continue
        for (const one of all) delete one[name]
      }
      for (const policy of policies) this.#fromPolicy(drawn, policy)
    }
  }

  #fromPolicy(drawn: Drawn, policy: Fields) {
    for (const [name, value] of Object.entries(policy)) {
      const own = { policies: [{ ...SMALLEST, [name]: value }] }
      if (!this.#agreeOn(drawn, `policies.${name}`, value, own)) delete policy[name]
    }
  }

  /** Compares both sides with a configuration that has nothing but one field. */
  #agreeOn(drawn: Drawn, name: string, value: unknown, config: Drawn['config']): boolean {
    if (value === undefined) return true
    const shown = `${name}: ${JSON.stringify(value, (_, one) => (typeof one === 'function' ? 'function' : one))}`
    const key = `${drawn.host} ${drawn.store} ${shown}`
    const agrees = this.#known.get(key) ?? this.#agree(drawn, config, shown)
    this.#known.set(key, agrees)
    return agrees
  }

  #agree(drawn: Drawn, config: Drawn['config'], shown?: string): boolean {
    const whole: Drawn = {
      ...drawn,
      config: {
        ...(drawn.host === 'gateway' && { origin: ORIGIN }),
        clientAddress: drawn.config.clientAddress,
        tables: drawn.config.tables,
        ...config,
      },
    }
    const found = this.#sides.map((side) => problemsOf(side, whole))
    if (isDeepStrictEqual(found[0], found[1])) return true
    const refusing = this.#sides[found[0] ? 0 : 1]!
    if (shown) this.fields.set(shown, refusing.name)
    return false
  }
}
