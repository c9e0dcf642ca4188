/**
 * A path as policies see it, so that no other spelling of the same path dodges one: percent-encodings undone once,
 * `\` as `/`, `.` and `..` resolved, empty segments and a trailing slash dropped. Letter case is kept. The origin still gets the path as sent.
 */
export function normalizePath(path: string): string {
  if (!/[%\\]|\/[./]|.\/$/.test(path)) return path
  const decoded = path.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
    try {
      return decodeURIComponent(run)
    } catch {
      return run
    }
  })
  const segments: string[] = []
  for (const segment of decoded.split(/[/\\]/)) {
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return `/${segments.join('/')}`
}

/** Compiles `/login`, `/users/:id` (one segment) or `/api/*` (`/api` and all below it). Holds against normalized paths. */
export function pathMatcher(pattern: string): (path: string) => boolean {
  const below = pattern.endsWith('/*')
  const source = normalizePath(below ? pattern.slice(0, -1) : pattern)
    .split('/')
    .map((segment) =>
      segment.startsWith(':') ? '[^/]+' : segment.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'),
    )
    .join('/')
  const regex = new RegExp(
    `^${source === '/' && below ? '' : source}${below ? '(?:/.*)?' : ''}$`,
    's',
  )
  return (path) => regex.test(path)
}
