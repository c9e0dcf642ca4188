/** A bounded map of what was used recently. If the young generation is full, it replaces the old one. A hit costs one lookup. */
export class Recent<T> {
  #young = new Map<string, T>()
  #old = new Map<string, T>()
  readonly #max: number

  /** @param max the number of entries of a generation */
  constructor(max: number) {
    this.#max = max
  }

  get(key: string): T | undefined {
    const found = this.#young.get(key)
    if (found !== undefined) return found
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: string, value: T): void {
    if (this.#young.size >= this.#max) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }
}
