/** The values that origins may read where a client has sent a name more than once, or in another spelling. */
import { textOfField } from './fold.ts'
import { mayBe, otherSpellings } from './names.ts'
import type { TokenView } from './view.ts'

const FLAW = /;|%(?![\da-f]{2})/i

/** From this length a query may have more parameters than origins read: PHP, qs and Tomcat leave out those after the first 1,000. */
const LONG = 1_000

/**
 * Lists the values that origins may read for a query parameter: the first of several (Go, Java servlets) or the last (Django, PHP, Rails).
 * Express, PHP and Rails also read other spellings of a name, Rack before 3 separates parameters by `;`, and Fastify
 * before 5 begins the query at a `;` of the path. `undefined` means that some origin reads none.
 */
export function queryValues(
  { query, search, pathParameters }: Pick<TokenView, 'query' | 'search' | 'pathParameters'>,
  name: string,
): (string | undefined)[] {
  const values = new Set<string | undefined>()
  const readings = [query]
  if (search.includes(';')) readings.push(new URLSearchParams(search.replaceAll(';', '&')))
  if (pathParameters !== undefined) readings.push(new URLSearchParams(`&${pathParameters}`)) // keeps a `?`
  // Go leaves out a parameter that has a `;` or an invalid encoding.
  if (FLAW.test(search)) {
    const flawed = search
      .slice(1)
      .split('&')
      .filter((pair) => FLAW.test(pair))
    if (flawed.some((pair) => new URLSearchParams(pair).has(name))) values.add(undefined)
  }
  for (const reading of readings) {
    const own = new Set(reading.getAll(name))
    for (const value of own) values.add(value)
    if (own.size === 0) values.add(undefined)
    for (const [key, value] of reading) if (key !== name && mayBe(key, name)) values.add(value)
  }
  if (search.length > LONG && search.split('&', LONG).length === LONG) values.add(undefined)
  return values.size === 1 && values.has(undefined) ? [] : [...values]
}

/** Fields whose value has commas although they were sent once, and that name no client. A whole value that matches is certain. */
const WITH_COMMAS =
  /^(accept(-.*)?|cache-control|cookie|date|expires|from|if-.*|pragma|prefer|priority|referer|sec-ch-ua.*|user-agent|via)$/

/** Control characters, and others that some origins remove at the ends of a value. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: workerd passes them on
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]|^[\x80-\xa0]|[\x80-\xa0]$/

/** The texts of a field and of its other spellings, in all of which CGI sees one field. `undefined` if a spelling is absent. */
export function spelledValues(headers: Headers, name: string): (string | undefined)[] {
  const textIn = (field: string) => {
    const value = headers.get(field)
    return value === null ? [] : [textOfField(value)]
  }
  const [value] = textIn(name)
  const others = otherSpellings(headers, name).flatMap(textIn)
  return value === undefined && others.length === 0 ? [] : [value, ...others]
}

/**
 * Lists the values that origins may read for a header field. The Fetch API joins the lines of a field with commas, and origins read the
 * first, the last or all of them. `undefined` means that some origin reads none.
 * @returns the values, and true if the first of them, which is the whole, is the only one that counts for a key, or if it matches
 */
export function headerValues(
  headers: Headers,
  name: string,
): [values: (string | undefined)[], isOne: boolean] {
  const values = spelledValues(headers, name)
  const [value] = values
  const isOne = values.length < 2 && (!value?.includes(',') || WITH_COMMAS.test(name))
  return [values.flatMap(linesOf), isOne && !(value && CONTROL.test(value))]
}

function linesOf(value: string | undefined): (string | undefined)[] {
  const lines = value?.includes(',')
    ? [value, ...value.split(',').map((line) => line.trim())]
    : [value]
  if (!value || !CONTROL.test(value)) return lines
  return [...lines, ...lines.map((line) => [...line!].filter((one) => !CONTROL.test(one)).join(''))]
}
