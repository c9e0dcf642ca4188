/** The candidate with the smallest edit distance to a word, if the distance is small enough for a misspelling. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, '')
  const [best] = candidates
    .map((candidate) => ({ candidate, distance: distance(plain(word), plain(candidate)) }))
    .sort((a, b) => a.distance - b.distance)
  return best && best.distance <= word.length / 3 ? best.candidate : undefined
}

/** The hint to write the candidate that a word misspells, or `otherwise`. */
export function didYouMean(word: string, candidates: readonly string[], otherwise = ''): string {
  const candidate = nearest(word, candidates)
  return candidate ? `Did you mean '${candidate}'?` : otherwise
}

/** Edit distance: insertions, deletions, replacements and swaps of neighboring letters (optimal string alignment). */
function distance(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= one.length; i++) {
    const [above, twoAbove] = [rows[i - 1]!, rows[i - 2]]
    const row = [i]
    for (let j = 1; j <= other.length; j++) {
      const replaced = above[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1)
      const swapped = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      const swap = swapped && twoAbove ? twoAbove[j - 2]! + 1 : replaced
      row.push(Math.min(above[j]! + 1, row[j - 1]! + 1, replaced, swap))
    }
    rows.push(row)
  }
  return rows[one.length]![other.length]!
}
