/** The traffic of the simulation. The same seed gives the same traffic. */

/** Picks one of `count` tenants by Zipf's law: the n-th in proportion to 1/n. */
export function createZipf(count: number): (random: () => number) => number {
  const sums = [0]
  for (let n = 1; n <= count; n++) sums.push(sums.at(-1)! + 1 / n)
  return (random) => {
    const wanted = random() * sums.at(-1)!
    let [low, high] = [0, count - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle + 1]! > wanted) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** Round trip from a data centre to the database in ms: up to 40 for half of the data centres, up to 150 for the farthest. */
export const rttOf = (colo: number) => Math.round(5 + 145 * ((colo * 0.618034) % 1) ** 2)
