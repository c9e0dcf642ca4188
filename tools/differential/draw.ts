/** Random choices. The same generator of numbers makes the same ones. */
export interface Draw {
  pick: <const T>(...of: T[]) => T
  /** True with the probability `share`. */
  chance: (share: number) => boolean
  whole: (least: number, most: number) => number
  /** A value with the probability `share`. */
  maybe: <T>(share: number, value: () => T) => T | undefined
}

export function drawFrom(random: () => number): Draw {
  const whole = (least: number, most: number) => least + Math.floor(random() * (most - least + 1))
  const chance = (share: number) => random() < share
  return {
    whole,
    chance,
    pick: (...of) => of[whole(0, of.length - 1)]!,
    maybe: (share, value) => (chance(share) ? value() : undefined),
  }
}
