/** A value as text for a message, cut to 60 characters. */
export function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (/^(number|bigint)$/.test(typeof value) || value instanceof RegExp)
    return shortened(String(value))
  try {
    return shortened(JSON.stringify(value) ?? typeof value)
  } catch {
    return typeof value // JSON.stringify throws for circular objects
  }
}

export const shortened = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text)
