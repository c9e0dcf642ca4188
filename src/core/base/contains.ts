/** True if a value, or an object in it, passes a test. For the plain objects and lists of a parsed configuration. */
export function contains(
  value: unknown,
  test: (part: Record<string, unknown>) => boolean,
): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (!Array.isArray(value) && test(value as Record<string, unknown>)) return true
  for (const part of Object.values(value)) if (contains(part, test)) return true
  return false
}
