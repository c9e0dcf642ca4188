/** A script taken apart: its shebang line as stock Redis accepts it, and the code below. */
export type Source = {
  /** With its newline. Empty when there is no shebang. */
  first: string
  code: string
  /** Whether it carries Upstash's flag, in the very first line, where alone Upstash sees it. */
  locking: boolean
  /** The line of an uncaught error whose line Lua forgot, as it does for `return redis.call(…)`. */
  onlyLine: string
}

/** Takes `allow-key-locking` out; the lines stay where they are. Redis 6 knows no shebang at all. */
export function takeApart(text: string, shebangs: boolean): Source {
  const onlyLine = only(text, /\breturn\s+redis\s*\.\s*p?call\b/) || only(text, /^(?!#!)\s*\S/)
  const end = text.startsWith('#!') ? text.indexOf('\n') + 1 : 0
  if (end === 0) return { first: '', code: text, locking: false, onlyLine }
  let locking = false
  const first = text.slice(0, end).replace(/\s+flags=(\S*)/, (all, list: string) => {
    const rest = list.split(',').filter((flag) => flag !== 'allow-key-locking')
    locking = rest.join(',') !== list
    if (!locking) return all
    return rest.length > 0 ? ` flags=${rest.join(',')}` : ''
  })
  return { first: shebangs ? first : '\n', code: text.slice(end), locking, onlyLine }
}

/** The number of the one line that matches, empty if none does or several. */
function only(text: string, pattern: RegExp): string {
  const lines = text.split('\n').flatMap((line, index) => (pattern.test(line) ? [index + 1] : []))
  return lines.length === 1 ? `${lines[0]}` : ''
}
