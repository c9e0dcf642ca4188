const BACKSLASH = 92

/** The position of the quote that ends a field in quotes, or -1. A quote in the field has an odd number of backslashes before it. */
export function closingQuote(text: string, from: number): number {
  let end = text.indexOf('"', from)
  while (end >= 0) {
    let start = end
    while (start > from && text.charCodeAt(start - 1) === BACKSLASH) start -= 1
    if ((end - start) % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return -1
}

/** A field in brackets. An address in brackets has a port behind it. */
const CLOSED = /^\[[^\]]*\](?: |$)/

/** Splits a line at its spaces, except those in quotes or brackets. Returns `undefined` if a quote or bracket is not closed. */
export function tokens(text: string): string[] | undefined {
  const fields: string[] = []
  let at = 0
  while (at < text.length) {
    const first = text[at]
    let end: number
    if (first === '"') end = closingQuote(text, at + 1)
    else if (first === '[' && CLOSED.test(text.slice(at))) end = text.indexOf(']', at)
    else {
      end = text.indexOf(' ', at)
      if (end < 0) end = text.length
      fields.push(text.slice(at, end))
      at = end + 1
      continue
    }
    if (end < 0) return undefined
    fields.push(text.slice(at + 1, end))
    at = end + 2
  }
  return fields
}
