import type { Way, World } from './run.ts'

/** The compared modes, from none of the features that save calls to all of them. */
export const ways: Way[] = [
  { name: 'one call per decision', batching: false, denialCache: false },
  { name: 'default settings', batching: true, denialCache: true },
  { name: 'with leases', batching: true, denialCache: true, lease: { max: 50, ttl: '1s' } },
]

/** The world and smaller ones by factors of ten, with the same rate per isolate; the smallest first. */
export function worldsUpTo({ isolates, colos, rps, ...others }: World): World[] {
  const worlds: World[] = []
  for (let part = 1; isolates / part >= 1; part *= 10) {
    const fewer = Math.floor(isolates / part)
    worlds.unshift({
      isolates: fewer,
      colos: Math.max(1, Math.min(fewer, Math.round(colos / part))),
      rps: Math.round((rps * fewer) / isolates),
      ...others,
    })
  }
  return worlds
}
