/** Memoizes a function by request, for all policies. Requests never share a promise, because on Workers they must not. */
export function oncePerRequest<View extends { request: Request }, T>(
  compute: (view: View) => Promise<T>,
): (view: View) => Promise<T> {
  const results = new WeakMap<Request, Promise<T>>()
  return (view) => {
    const known = results.get(view.request)
    if (known) return known
    const result = compute(view)
    results.set(view.request, result)
    return result
  }
}
