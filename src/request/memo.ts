import type { RequestView } from './view.ts'

/** Asks once for each request, however many policies want to know. What they share is the request's own promise, never another's. */
export function oncePerRequest<T>(
  ask: (view: RequestView) => Promise<T>,
): (view: RequestView) => Promise<T> {
  const answers = new WeakMap<Request, Promise<T>>()
  return (view) => {
    const known = answers.get(view.request)
    if (known) return known
    const answer = ask(view)
    answers.set(view.request, answer)
    return answer
  }
}
