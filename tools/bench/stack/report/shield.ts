import type { ShieldFlood } from '../legs/shield.ts'

/** The share of a flood that passes a shield. */
export function shieldText({ requests, refused, reached }: ShieldFlood): string {
  const result =
    reached === undefined
      ? 'the run took longer than a period of the shield, so the result is not valid'
      : `${(reached * 100).toFixed(2)} % reached Redis`
  return `### A flood behind a shield\n\n${requests} requests, each with another exhausted key, in Miniflare, denial cache off: ${refused} refused; ${result}.`
}
