import type { Denied } from '../../../src/core/base/decision.ts'
import type { Policy } from '../../../src/core/config/parse.ts'
import type { Verdict } from './verdict.ts'

type Named = Pick<Policy, 'name' | 'mode'>

/** The most different answers in memory. */
const MAX_ANSWERS = 10_000

/**
 * The answers of the first limits of a request: if each has room for it. Requests with the same answers share an object and its verdict.
 */
export class Answers {
  readonly #following: [refused: Map<string, Answers>, allowed: Map<string, Answers>] = [
    new Map(),
    new Map(),
  ]
  readonly #none: Answers
  #count = 0
  readonly #before: Answers | undefined
  readonly #policy: Named | undefined
  readonly #allowed: boolean
  #verdict: Verdict | undefined

  constructor(before?: Answers, policy?: Named, allowed = true) {
    this.#none = before ? before.#none : this
    this.#before = before
    this.#policy = policy
    this.#allowed = allowed
  }

  /** These answers, and that of one more limit in the order of the configuration. */
  and(policy: Named, allowed: boolean): Answers {
    const following = this.#following[allowed ? 1 : 0]
    let answers = following.get(policy.name)
    if (!answers) {
      answers = new Answers(this, policy, allowed)
      this.#none.#count += 1
      if (this.#none.#count <= MAX_ANSWERS) following.set(policy.name, answers)
    }
    return answers
  }

  get verdict(): Verdict {
    this.#verdict ??= verdictOf(this.#list())
    return this.#verdict
  }

  #list(): [policy: Named, allowed: boolean][] {
    return this.#before ? [...this.#before.#list(), [this.#policy!, this.#allowed]] : []
  }
}

function verdictOf(answers: [policy: Named, allowed: boolean][]): Verdict {
  const names = (isMeant: (policy: Named, allowed: boolean) => boolean) => [
    ...new Set(answers.filter((one) => isMeant(...one)).map(([{ name }]) => name)),
  ]
  const refusedBy = names(({ mode }, allowed) => mode === 'enforce' && !allowed)
  return {
    allowed: refusedBy.length === 0,
    by: 'policies',
    policies: names(() => true),
    refusedBy,
    shadowRefusedBy: names(({ mode }, allowed) => mode === 'shadow' && !allowed),
  }
}

export function deniedVerdict({ by, missing, unreadable, unverified }: Denied): Verdict {
  const isMissing = missing ?? unreadable ?? unverified
  return {
    allowed: false,
    by: isMissing === undefined ? 'deny' : 'missing-key',
    deniedBy: by,
    policies: [],
    refusedBy: [],
    shadowRefusedBy: [],
  }
}
