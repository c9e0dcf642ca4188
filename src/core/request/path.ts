import { isBlank, strip } from './fold.ts'
import type { RequestView } from './view.ts'

/**
 * Normalizes a path for policies, so that no other spelling evades one: decodes percent-encodings once, treats `\` as `/`, drops path
 * parameters (`;x=1`), empty segments and a trailing slash, and resolves `.` and `..`. The origin receives the path of the URL.
 */
export const normalizePath = (path: string): string => spellings(path)[0]!

/**
 * Lists the readings of a path: the meanings that origins may give to it. Most paths have one. Origins differ on whether `%2F` and `%5C`
 * separate segments, whether `..;x` equals `..`, whether what follows a `;` is a part of the segment, and whether `..` removes an empty
 * segment. For example `/api/x%2F..%2F..` and `/api/..;` are `/` for some origins and below
 * `/api` for others. PHP's `parse_url` and `new URL(target, base)` take `//a/login` for the path `/login` of the host `a`. Fastify before 5 ends the path at the
 * first `;`. The `$` of a regular expression also matches before a line feed at the end of a path, and in Ruby `^` and `$` match at each line feed.
 * Some origins trim a path, and Caddy ignores dots and spaces at its end, as file systems of Windows do. CGI, PHP and ASP.NET run `/login.php` for `/login.php/x` with the rest as `PATH_INFO`
 * (RFC 3875, 4.1.5), which is the path for the routers of Symfony, Laravel and WordPress: `/index.php/login` is `/login`.
 * @param sent the path as it was sent, where a router such as Hono's may read it before `.`, `..` and `\` are resolved
 * @returns the normalized path first
 */
export function readings(path: string, sent = path): string[] {
  const all = spellings(path)
  if (sent !== path) all.push(...spellings(sent.replaceAll('\\', '%5C'), [UNRESOLVED]))
  const others = path.includes(';') ? [path.split(';', 1)[0]!] : []
  if (path.startsWith('//')) others.push(path.replace(/^\/+[^/]*\/?/, '/'))
  all.push(...others.map(normalizePath))
  return [...new Set(all.flatMap(byPrograms).flatMap((one) => [one, ...linesOf(one)]))]
}

export const pathOf = (view: Pick<RequestView, 'path' | 'pathsBy'>): string =>
  view.path ?? view.pathsBy(readings)[0]!

/** The end of a segment that names a program, before other segments. Apache decodes `%2F` before it looks for a program. */
const PROGRAM = /\.(?:php\d?|phtml|f?cgi|pl|aspx?|ashx|cfm)(?=\/|%2f)/gi

/** So many programs in a path make it unreadable. */
const MAX_PROGRAMS = 16

/** The path, and for each program in it: the program, what follows it, and the path without it. */
function byPrograms(path: string): string[] {
  const all = [path]
  if (!path.includes('.')) return all
  for (const { 0: extension, index } of [...path.matchAll(PROGRAM)].slice(0, MAX_PROGRAMS)) {
    const end = index + extension.length
    const rest = path.slice(end).replace(/^(?:\/|%2f)+/i, '/')
    all.push(path.slice(0, end), rest, path.slice(0, path.lastIndexOf('/', index)) + rest)
  }
  return all
}

/** The lines of a path, without what origins drop at their ends. A path without a line feed is one line. */
const linesOf = (path: string) =>
  path
    .split(/[\n\r\u2028\u2029]/)
    .filter((line) => line.startsWith('/'))
    .map((line) => strip(line, endsPath) || '/')

const endsPath = (character: string, isBefore: boolean) =>
  !isBefore && ('/.'.includes(character) || isBlank(character))

/** How an origin reads a segment: the text that may be `.` or `..`, and the name that is matched. */
type Reading = [dots: (part: string) => string, name: (part: string) => string]

const whole = (part: string) => part
const bare = (part: string) => part.replace(/;.*/s, '')

/** Path parameters are dropped before `..` is resolved, or after it, or never. */
const READINGS: Reading[] = [
  [bare, bare],
  [whole, bare],
  [whole, whole],
]
const UNRESOLVED: Reading = [() => '', whole]

function spellings(path: string, ways = READINGS): string[] {
  if (!/[%\\;]|\/[./]|.\/$/.test(path)) return [path]
  const separators = /%(2f|5c)/i.test(path) ? ['/\\', '/', ''] : ['']
  const read = /;|%3b/i.test(path) ? ways : ways.slice(0, 1)
  const merges = /(?:[/\\]|%2f|%5c){2}/i.test(path) ? [true, false] : [true]
  const all = separators
    .map((decoded) => decode(path, decoded).split(/[/\\]/))
    .flatMap((parts) => read.flatMap((way) => merges.map((merged) => resolve(parts, way, merged))))
  return [...new Set(all)]
}

/**
 * True if an origin may resolve a path, appended to a base path, to one outside the base. Below `/app`, `/..%2Fx` is `/x` for an origin that
 * decodes `%2F` before it resolves `..`, and `/..;/x` is `/x` for one that drops path parameters first.
 */
export function leavesBase(path: string): boolean {
  const expected = spellings(path).map((reading) => `/base${reading}`.replace(/\/$/, ''))
  const actual = spellings(`/base${path}`)
  return actual.length !== expected.length || actual.some((one, index) => one !== expected[index])
}

/** @param separators the separators, of `/` and `\`, whose encodings are decoded */
function decode(path: string, separators: string): string {
  // ASCII characters are decoded separately, so that an invalid UTF-8 byte does not keep its neighbors encoded.
  return path.replace(/%[0-7][0-9a-f]|(?:%[89a-f][0-9a-f])+/gi, (run) => {
    try {
      const text = decodeURIComponent(run)
      return /[/\\]/.test(text) && !separators.includes(text) ? run.toUpperCase() : text
    } catch {
      return run.toUpperCase()
    }
  })
}

/** @param merges whether `//` is `/` before `..` is resolved. By the URL standard `..` removes the empty segment between them. */
function resolve(parts: string[], [dotsOf, nameOf]: Reading, merges: boolean): string {
  const segments: string[] = []
  for (const part of parts) {
    const [dots, name] = [dotsOf(part), nameOf(part)]
    if (dots === '..') segments.pop()
    else if (dots !== '.' && !(merges && name === '')) segments.push(name)
  }
  return `/${segments.filter((segment) => segment !== '').join('/')}`
}

/** Compiles a pattern of `match.path` for normalized paths. The result returns the parameters of a path that matches, else `undefined`. */
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
        // Lower case like the normalized paths. The flag "i" does not match "İ" with its lower case "i̇".
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
