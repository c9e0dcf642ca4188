/** Parses a whole number of a command line. @throws Error that names the flag and the allowed range */
export function within(flag: string, text: string, low: number, high: number): number {
  const number = Number(text)
  if (Number.isInteger(number) && number >= low && number <= high) return number
  throw new Error(`${flag}: expected a whole number from ${low} to ${high}, got "${text}"`)
}
