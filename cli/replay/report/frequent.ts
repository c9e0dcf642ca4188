import { flat } from '../read/text.ts'
import type { Frequencies } from './types.ts'

const MAX_ENTRIES = 32
const MAX_TEXTS = 50_000
const MAX_LENGTH = 200

/** A text that several counts share. */
interface Shared {
  readonly text: string
}

/** Finds the one copy of a text, so that equal texts are the same object. Forgets all of them when there are too many. */
export class Texts {
  readonly #shared = new Map<string, Shared>()

  share(text: string): Shared {
    const short = text.length > MAX_LENGTH ? text.slice(0, MAX_LENGTH) : text
    let shared = this.#shared.get(short)
    if (!shared) {
      if (this.#shared.size >= MAX_TEXTS) this.#shared.clear()
      shared = { text: flat(short) }
      this.#shared.set(shared.text, shared)
    }
    return shared
  }
}

/**
 * Finds the most frequent of many texts in constant memory (Metwally, Agrawal, El Abbadi: Space-Saving, ICDT 2005). A new text replaces the
 * entry with the lowest count and inherits that count as its error.
 */
export class Frequent {
  readonly #texts: Shared[] = []
  readonly #counts: number[] = []
  /** Empty until an entry is replaced. */
  readonly #errors: number[] = []
  #requests = 0
  /** How often a text had no entry. */
  #new = 0

  add(text: string, texts: Texts): void {
    this.count(texts.share(text))
  }

  count(text: Shared): void {
    this.#requests += 1
    this.#counts[this.#entryOf(text)]! += 1
  }

  #entryOf(text: Shared): number {
    const known = this.#texts.indexOf(text)
    if (known >= 0) return known
    this.#new += 1
    if (this.#texts.length < MAX_ENTRIES) {
      this.#counts.push(0)
      return this.#texts.push(text) - 1
    }
    const entry = this.#lowest()
    this.#texts[entry] = text
    this.#errors[entry] = this.#counts[entry]!
    return entry
  }

  #lowest(): number {
    let lowest = 0
    for (let entry = 1; entry < MAX_ENTRIES; entry += 1) {
      if (this.#counts[entry]! < this.#counts[lowest]!) lowest = entry
    }
    return lowest
  }

  /** @param most the number of texts to return */
  report(most: number): Frequencies {
    const top = this.#texts
      .map(({ text }, entry) => {
        const high = this.#counts[entry]!
        return { text, requests: { low: high - (this.#errors[entry] ?? 0), high } }
      })
      .sort((a, b) => b.requests.low - a.requests.low || b.requests.high - a.requests.high)
      .slice(0, most)
    // No entry was replaced before the 33rd text.
    return {
      requests: this.#requests,
      different: { low: Math.min(this.#new, MAX_ENTRIES + 1), high: this.#new },
      top,
    }
  }
}
