/** The result of a promise; `undefined` after `ms`. */
export function within<Result>(work: Promise<Result>, ms: number): Promise<Result | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
