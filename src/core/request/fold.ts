/** What origins do to a value that a client writes, before they compare it. */

/** White space and control characters. Origins remove them at the ends of a value, or match a line feed there as the end. */
const BLANK = /[\s\p{Cc}]/u

export const isBlank = (character: string): boolean => BLANK.test(character)

/** Removes characters from both ends, in linear time. A regular expression that is anchored at the end would take quadratic time. */
export function strip(text: string, isDropped: (character: string, isBefore: boolean) => boolean) {
  let start = 0
  let end = text.length
  while (start < end && isDropped(text[start]!, true)) start += 1
  while (end > start && isDropped(text[end - 1]!, false)) end -= 1
  return text.slice(start, end)
}

export const trimmed = (text: string): string => strip(text, isBlank)

/** The text of a header field. The Fetch API reads each byte as a character, and most origins read the bytes as UTF-8 if they are. */
export function textOfField(value: string): string {
  if (/^[ -~]*$/.test(value) || /[^\0-\xff]/.test(value)) return value
  try {
    const bytes = Uint8Array.from(value, (character) => character.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return value
  }
}

/** Accents of Latin, Greek and Cyrillic letters, and characters without a form. */
const IGNORED = /[\u0300-\u036f\p{Cc}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Folds the spellings that login forms and databases read as one name: letter case, the compatibility forms of Unicode (UAX #15, NFKC), and
 * accents, invisible characters and white space at the ends, which collations ignore. A text of nothing else is kept.
 */
export function folded(text: string): string {
  if (/^[!-~]*$/.test(text)) return text.toLowerCase()
  const plain = text.normalize('NFKD').toLowerCase().toUpperCase().toLowerCase().normalize('NFKD')
  return trimmed(plain.replace(IGNORED, '')) || trimmed(text) || text
}
