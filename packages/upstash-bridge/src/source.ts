/** A script, split into its shebang line, as stock Redis accepts it, and its code. */
export type Source = {
  /** The shebang line with its newline. Empty if there is none. */
  first: string
  code: string
  /** True if the first line contains the flag `allow-key-locking`. Upstash reads it only there. */
  locking: boolean
  /** The line to report for an error without a line: Lua drops the line of a tail call such as `return redis.call(…)`. */
  onlyLine: string
}

/** Removes `allow-key-locking` from the shebang line, or the whole line for Redis 6. Line numbers do not change. */
export function takeApart(text: string, shebangs: boolean): Source {
  const onlyLine = only(text, /\breturn\s+redis\s*\.\s*p?call\b/) || only(text, /^(?!#!)\s*\S/)
  const end = text.startsWith('#!') ? text.indexOf('\n') + 1 : 0
  if (end === 0) return { first: '', code: text, locking: false, onlyLine }
  let locking = false
  // Looks behind, so that a long run of spaces is tried once and not from each of its characters.
  const first = text.slice(0, end).replace(/(?<!\s)\s+flags=(\S*)/, (all, list: string) => {
    const rest = list.split(',').filter((flag) => flag !== 'allow-key-locking')
    locking = rest.join(',') !== list
    if (!locking) return all
    return rest.length > 0 ? ` flags=${rest.join(',')}` : ''
  })
  return { first: shebangs ? first : '\n', code: text.slice(end), locking, onlyLine }
}

/** The number of the line that matches; empty if no line matches or several do. */
function only(text: string, pattern: RegExp): string {
  const lines = text.split('\n').flatMap((line, index) => (pattern.test(line) ? [index + 1] : []))
  return lines.length === 1 ? `${lines[0]}` : ''
}
