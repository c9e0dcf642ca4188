/** The lines that differ between two texts, as in a diff: `- ` removed, `+ ` added. */
export function changedLines(before: string, after: string): string[] {
  const from = before.split('\n')
  const to = after.split('\n')
  // Lengths of the longest common subsequences of the rests.
  const common = Array.from({ length: from.length + 1 }, () => new Uint32Array(to.length + 1))
  for (let i = from.length - 1; i >= 0; i--) {
    for (let j = to.length - 1; j >= 0; j--) {
      common[i]![j] =
        from[i] === to[j]
          ? common[i + 1]![j + 1]! + 1
          : Math.max(common[i + 1]![j]!, common[i]![j + 1]!)
    }
  }
  const lines: string[] = []
  let i = 0
  let j = 0
  while (i < from.length || j < to.length) {
    if (i < from.length && j < to.length && from[i] === to[j]) {
      i++
      j++
    } else if (j < to.length && (i === from.length || common[i]![j + 1]! > common[i + 1]![j]!)) {
      lines.push(`+ ${to[j++]}`)
    } else lines.push(`- ${from[i++]}`)
  }
  return lines
}
