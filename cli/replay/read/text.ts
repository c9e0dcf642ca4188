const LONGEST = 80

/** The beginning of a text, with a visible character instead of each control character. */
export function printable(text: string): string {
  const start = text
    .slice(0, LONGEST + 1)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u00b7')
  return start.length > LONGEST ? `${start.slice(0, LONGEST - 1)}\u2026` : start
}

/** A copy that does not keep the text in memory of which it is a part. A slice of 13 characters or more refers to its text. */
export const flat = (text: string): string => (text.length < 13 ? text : ` ${text}`.slice(1))
