import fc from 'fast-check'

/** The surrogates begin here. They are no characters. */
const SURROGATES = 0xd800
const COUNT = 0x800

/**
 * Any character, as a unit of `fc.string`. The unit `binary` of fast-check, which its URLs contain too, draws the same and takes two
 * seconds to create.
 */
export const anyCharacter = fc.integer({ min: 0, max: 0x10ffff - COUNT }).map(
  (number) => String.fromCodePoint(number < SURROGATES ? number : number + COUNT),
  (text) => {
    const code = String(text).codePointAt(0)!
    if (String.fromCodePoint(code) !== text) throw new Error('not one character')
    return code < SURROGATES ? code : code - COUNT
  },
)

/** Text of any code points, with many that have a meaning in HTML, JSON, URLs or header fields. */
export const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'<>&"\'{}[]%+=?#;,:\\\r\n\0 a'),
    fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code)),
  ),
})

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
const escaped = anyCharacter.map((text) =>
  encodeURIComponent(text).replace(/^[^%]$/, (one) => `%${one.charCodeAt(0).toString(16)}`),
)
const partOf = (more: string) =>
  fc.string({
    unit: fc.oneof(
      { weight: 10, arbitrary: fc.constantFrom(...LETTERS, ...more) },
      { weight: 1, arbitrary: escaped },
    ),
  })
const segment = partOf("-._~!$&'()*+,;=:@")
const query = partOf("-._~!$&'()*+,;=:@/?")

/** Any URL of HTTP, with a query or without. */
export const anyUrl = ({ withFragments = false } = {}) =>
  fc
    .tuple(
      fc.constantFrom('http', 'https'),
      fc.webAuthority(),
      fc.array(segment),
      fc.option(query),
      withFragments ? fc.option(query) : fc.constant(null),
    )
    .map(([scheme, host, path, search, hash]) => {
      const after = [search === null ? '' : `?${search}`, hash === null ? '' : `#${hash}`]
      return `${scheme}://${[host, ...path].join('/')}${after.join('')}`
    })
