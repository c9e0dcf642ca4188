/**
 * A path as policies see it, so that no other spelling of the same path dodges one: percent-encodings undone once,
 * `\` as `/`, path parameters (`;x=1`) dropped, `.` and `..` resolved, empty segments and a trailing slash dropped.
 * The origin gets the path as the URL standard writes it.
 */
export const normalizePath = (path: string): string => readings(path)[0]!

/**
 * The paths that origins may take a path for; of nearly all there is one. They differ on whether `%2F` and `%5C` separate, and
 * whether `..;x` is `..`: what is `/` to one is below `/api` to another, as `/api/x%2F..%2F..` and `/api/..;` are.
 * @returns the normalized path first
 */
export function readings(path: string): string[] {
  if (!/[%\\;]|\/[./]|.\/$/.test(path)) return [path]
  const separators = /%(2f|5c)/i.test(path) ? ['/\\', '/', ''] : ['']
  const parameters = /;|%3b/i.test(path) ? [true, false] : [true]
  const all = separators
    .map((some) => decode(path, some).split(/[/\\]/))
    .flatMap((parts) => parameters.map((dots) => resolve(parts, dots)))
  return [...new Set(all)]
}

/**
 * Reports whether an origin may resolve a path, put behind a base path, to a place outside that base. Below `/app` the path
 * `/..%2Fx` is `/x` to an origin that decodes `%2F` before it resolves `..`, and so is `/..;/x` to one that drops parameters first.
 */
export function leavesBase(path: string): boolean {
  const expected = readings(path).map((reading) => `/base${reading}`.replace(/\/$/, ''))
  const actual = readings(`/base${path}`)
  return actual.length !== expected.length || actual.some((one, index) => one !== expected[index])
}

/** @param separators which of `/` and `\` are decoded */
function decode(path: string, separators: string): string {
  // ASCII by itself, so that a byte that is no UTF-8 does not keep what stands beside it encoded.
  return path.replace(/%[0-7][0-9a-f]|(?:%[89a-f][0-9a-f])+/gi, (run) => {
    try {
      const text = decodeURIComponent(run)
      return /[/\\]/.test(text) && !separators.includes(text) ? run.toUpperCase() : text
    } catch {
      return run.toUpperCase()
    }
  })
}

/** @param parameters whether `..;x` is `..` */
function resolve(parts: string[], parameters: boolean): string {
  const segments: string[] = []
  for (const part of parts) {
    const segment = part.replace(/;.*/s, '')
    const dots = parameters ? segment : part
    if (dots === '..') segments.pop()
    else if (segment !== '' && dots !== '.') segments.push(segment)
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
