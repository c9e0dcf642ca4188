import type { ShieldFlood } from '../legs/shield.ts'

/** How much of a flood the first layer takes off. */
export function shieldText({ requests, refused, reached }: ShieldFlood): string {
  const told =
    reached === undefined
      ? 'it took longer than a period of the shield, and tells nothing'
      : `Redis saw ${(reached * 100).toFixed(2)} % of them`
  return `### A flood behind a shield\n\n${requests} requests of as many exhausted keys, in Miniflare, denial cache off: ${refused} refused; ${told}.`
}
