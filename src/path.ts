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
 * Compiles `/login`, `/users/:id` (one segment) or `/api/*` (`/api` and all below it), to be held against normalized paths.
 * Letter case does not matter: to meet a request too many is better than to be dodged where the origin ignores case.
 */
export function pathMatcher(pattern: string): (path: string) => boolean {
  const below = pattern.endsWith('/*')
  const segments = pattern
    .replace(/\/\*?$/, '')
    .split('/')
    .slice(1)
    .map((segment) => (segment.startsWith(':') ? '/[^/]+' : literal(normalizePath(`/${segment}`))))
  const regex = new RegExp(
    `^${segments.join('') || (below ? '' : '/')}${below ? '(?:/.*)?' : ''}$`,
    'is',
  )
  return (path) => regex.test(path)
}

const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
