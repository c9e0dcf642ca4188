/** The values that origins may read where a client has sent a name more than once. */

/**
 * Lists the values that origins may read for a query parameter: the first of several (Go, Java servlets), the last (Django, PHP, Rails), or
 * all (Express). Express, PHP and Rails also read `name[]`, and old versions of Rack separate parameters by `;`. `undefined` means that
 * some origin reads none.
 * @param search the query of the URL as it was sent, with `?`
 */
export function queryValues(
  query: URLSearchParams,
  search: string,
  name: string,
): (string | undefined)[] {
  const plain = query.getAll(name)
  if (plain.length < 2 && !/[;[]|%5b/i.test(search)) return plain
  const values = new Set<string | undefined>()
  const readings = [query]
  if (search.includes(';')) readings.push(new URLSearchParams(search.replaceAll(';', '&')))
  for (const reading of readings) {
    const own = reading.getAll(name)
    const members = [...reading].filter(([key]) => key.startsWith(`${name}[`))
    if (own.length === 0) values.add(undefined)
    for (const value of [...own, ...members.map(([, value]) => value)]) values.add(value)
    if (new Set(own).size > 1) values.add(own.join(','))
  }
  return [...values]
}

/** Fields whose value has commas although they were sent once. A whole value that matches is certain. */
const WITH_COMMAS =
  /^(accept(-.*)?|authorization|cache-control|cookie|date|expires|forwarded|from|if-.*|pragma|prefer|referer|sec-ch-ua.*|user-agent|via|x-forwarded-for)$/

/**
 * Lists the values that origins may read for a header field. The Fetch API joins the lines of a field with commas, and origins read the
 * first, the last or all of them.
 * @returns the values, and true if the first of them, which is the whole, is the only one that counts if it matches
 */
export function headerValues(headers: Headers, name: string): [values: string[], isOne: boolean] {
  const value = headers.get(name)
  if (value === null) return [[], true]
  if (!value.includes(',')) return [[value], true]
  const lines = value.split(',').map((line) => line.trim())
  return [[value, ...lines], WITH_COMMAS.test(name)]
}
