/**
 * A path as policies see it, so that no other spelling of the same path dodges one: percent-encodings undone once,
 * `\` as `/`, path parameters (`;x=1`) dropped, `.` and `..` resolved, empty segments and a trailing slash dropped.
 * The origin still gets the path as sent.
 */
export function normalizePath(path: string): string {
  if (!/[%\\;]|\/[./]|.\/$/.test(path)) return path
  // ASCII by itself, so that a byte that is no UTF-8 does not keep what stands beside it encoded.
  const decoded = path.replace(/%[0-7][0-9a-f]|(?:%[89a-f][0-9a-f])+/gi, (run) => {
    try {
      return decodeURIComponent(run)
    } catch {
      return run.toUpperCase()
    }
  })
  const segments: string[] = []
  for (const part of decoded.split(/[/\\]/)) {
    const segment = part.replace(/;.*/s, '')
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return `/${segments.join('/')}`
}

/**
 * Compiles `/login`, `/users/:id` (one segment) or `/api/*` (`/api` and all below it), to be held against normalized paths: the
 * parameters of a path that matches, else `undefined`. Letter case does not matter unless told so.
 */
export function pathMatcher(
  pattern: string,
  caseSensitive = false,
): (path: string) => Record<string, string> | undefined {
  const below = pattern.endsWith('/*')
  const names: string[] = []
  const segments = pattern
    .replace(/\/\*?$/, '')
    .split('/')
    .slice(1)
    .map((segment) => {
      if (!segment.startsWith(':')) {
        const text = normalizePath(`/${segment}`)
        // As the paths it is held against: a regular expression does not find that "i̇" is "İ" in lower case.
        return literal(caseSensitive ? text : text.toLowerCase())
      }
      names.push(segment.slice(1))
      return '/([^/]+)'
    })
  const regex = new RegExp(
    `^${segments.join('') || (below ? '' : '/')}${below ? '(?:/.*)?' : ''}$`,
    caseSensitive ? 's' : 'is',
  )
  return (path) => {
    const values = regex.exec(path)?.slice(1)
    return values && Object.fromEntries(names.map((name, index) => [name, values[index]!]))
  }
}

const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
