/** Things by name, of which the least recently used go when they are too many. */
export interface Shelf<T> {
  /** What is there by this name; made where it is not. */
  of(name: string, make: () => T): T
  find(name: string): T | undefined
  /** Takes off all whose name is such, and hands them out. */
  remove(isSuch: (name: string) => boolean): T[]
}

/**
 * @param maxBytes of names, and of what is by them
 * @param bytesEach of one, beside its name
 * @param left is told of what went
 */
export function createShelf<T>(
  maxBytes: number,
  bytesEach: number,
  left: (one: T) => void,
): Shelf<T> {
  const things = new Map<string, T>() // the least recently used first
  let bytes = 0
  const sizeOf = (name: string) => 2 * name.length + bytesEach

  function take(name: string): T {
    const one = things.get(name)!
    things.delete(name)
    bytes -= sizeOf(name)
    return one
  }

  return {
    of(name, make) {
      const one = things.has(name) ? take(name) : make()
      things.set(name, one)
      bytes += sizeOf(name)
      for (const oldest of things.keys()) {
        if (bytes <= maxBytes || oldest === name) break
        left(take(oldest))
      }
      return one
    },
    find: (name) => things.get(name),
    remove: (isSuch) => [...things.keys()].filter(isSuch).map(take),
  }
}
