const BAR_WIDTH = 24

/** Returns a terminal's cursor to the beginning of an empty line. */
export const CLEAR_LINE = '\r\u001b[K'

/** A bar with a percentage. @param share from 0 to 1 */
export function progressBar(share: number): string {
  const filled = Math.round(share * BAR_WIDTH)
  return `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${Math.floor(share * 100)} %`
}
