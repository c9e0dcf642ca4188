import type { Way, World } from './run.ts'

/** From none of what saves calls to all of it. */
export const ways: Way[] = [
  { name: 'a call for each', batching: false, denialCache: false },
  { name: 'as it comes', batching: true, denialCache: true },
  { name: 'with leases', batching: true, denialCache: true, lease: { max: 50, ttl: '1s' } },
]

/** Worlds a tenth as large each, with as many requests for each isolate; the smallest first. */
export function worldsUpTo({ isolates, colos, rps, seconds }: World): World[] {
  const worlds: World[] = []
  for (let part = 1; isolates / part >= 1; part *= 10) {
    const fewer = Math.floor(isolates / part)
    worlds.unshift({
      isolates: fewer,
      colos: Math.max(1, Math.min(fewer, Math.round(colos / part))),
      rps: Math.round((rps * fewer) / isolates),
      seconds,
    })
  }
  return worlds
}
