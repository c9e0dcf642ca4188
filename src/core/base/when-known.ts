/** A value that is known now, or later. */
export type Soon<T> = T | Promise<T>

/** Continues with a value: at once if it is known. An `await` would cost every request a turn of the microtask queue. */
export const whenKnown = <T, Result>(
  value: Soon<T>,
  next: (value: T) => Soon<Result>,
): Soon<Result> => (value instanceof Promise ? value.then(next) : next(value))

/** Returns the values of a list: at once if all are known. */
export function whenAllKnown<T>(values: Soon<T>[]): Soon<T[]> {
  for (const value of values) if (value instanceof Promise) return Promise.all(values)
  return values as T[]
}
