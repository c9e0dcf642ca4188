/** Other spellings of a name that some origins read as the name. */

/** Decodes `%u0061` as ASP.NET does, and other percent-encodings where they are valid. */
function decoded(name: string): string {
  if (!name.includes('%')) return name
  const text = name.replace(/%u([0-9a-f]{4})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Characters before and after a name that some origins drop: all but printable ASCII, and brackets and `?` before it. */
const isDropped = (character: string | undefined, isBefore: boolean): boolean =>
  character !== undefined &&
  (character <= ' ' || character > '~' || (isBefore && '[]?$'.includes(character)))

/** In linear time. A regular expression that is anchored at the end would take quadratic time. */
function trimmed(name: string): string {
  let start = 0
  let end = name.length
  while (isDropped(name[start], true)) start += 1
  while (end > start && isDropped(name[end - 1], false)) end -= 1
  return name.slice(start, end)
}

/**
 * Folds a name as origins do that change names. PHP reads `.`, a space and an open `[` as `_`, and ends a name at a NUL; Rack and qs read
 * `[name]` as `name`, and `name[]` as a list; ASP.NET ignores the letter case.
 */
function folded(name: string): string {
  const text = trimmed(decoded(name).split('\0', 1)[0]!)
  const close = text.indexOf(']')
  // Without a `]` the bracket is a part of the name.
  const whole = close < 0 ? text : text.slice(0, close).split('[', 1)[0]!
  return whole.replace(/[. []/g, '_').toLowerCase()
}

const known = new Map<string, string>()

/** Reports whether some origin may read a name that a client has sent as a name of the configuration, or as a list of that name. */
export function mayBe(sent: string, name: string): boolean {
  if (sent.length < name.length) return false
  const wanted = known.get(name) ?? folded(name)
  known.set(name, wanted)
  return folded(sent) === wanted
}

const spellings = new Map<string, string[]>()

/**
 * The other spellings of the name of a header field that CGI cannot tell from it: PHP, Rack and WSGI read `X_Plan` as `X-Plan`, and PHP
 * behind Caddy also `X.Plan`. Of a name with more than two `-` only those with `_`, of one with more than four only that without any `-`.
 */
export function headerSpellings(name: string): string[] {
  const found = spellings.get(name) ?? spell(name)
  spellings.set(name, found)
  return found
}

function spell(name: string): string[] {
  const [first, ...rest] = name.split('-')
  if (rest.length > 4) return [name.replaceAll('-', '_')]
  const separators = rest.length > 2 ? ['-', '_'] : ['-', '_', '.']
  return rest
    .reduce(
      (all, part) => all.flatMap((one) => separators.map((separator) => one + separator + part)),
      [first!],
    )
    .slice(1)
}
