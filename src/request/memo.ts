import type { Seen } from './view.ts'

/** Asks once for each request, however many policies want to know. What they share is the request's own promise, never another's. */
export function oncePerRequest<T>(ask: (seen: Seen) => Promise<T>): (seen: Seen) => Promise<T> {
  const answers = new WeakMap<Request, Promise<T>>()
  return (seen) => {
    const known = answers.get(seen.request)
    if (known) return known
    const answer = ask(seen)
    answers.set(seen.request, answer)
    return answer
  }
}
