import type { ConfigRule } from './facts.ts'

const PATH = 'shards.moveFrom'

/** Finds a move between lists with the same names. */
export const sameShards: ConfigRule = ({ config: { shards } }) =>
  shards?.moveFrom && isSameLayout(shards.moveFrom, shards.names)
    ? {
        code: 'same-shards',
        path: PATH,
        message: `The old and the new list of shards are equal, so no client moves: ${shards.names.join(', ')}.`,
        hint: 'Write the new list into shards() and the old one into moveFrom. The order of names has no meaning. Without a move, delete moveFrom.',
      }
    : []

const isSameLayout = (from: readonly string[], to: readonly string[]) =>
  from.length === to.length && from.every((name) => to.includes(name))

/** Finds a name in the old list that is a name of the new one, written differently. */
export const unknownShard: ConfigRule = ({ config: { shards } }) =>
  (shards?.moveFrom ?? []).flatMap((name) => {
    const { names } = shards!
    const plain = (text: string) => text.replace(/-|(?<!\d)0+/g, '')
    const meant = !names.includes(name) && names.find((other) => plain(other) === plain(name))
    if (!meant) return []
    return {
      code: 'unknown-shard',
      path: PATH,
      message: `moveFrom names the shard "${name}", and the new list has "${meant}". These are two databases, and all clients of one would move to the other.`,
      hint: `Write "${meant}" in both lists. If both shards exist, accept this finding.`,
    }
  })
