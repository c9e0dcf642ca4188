/** Who asks, when and where: always the same for the same seed. */

/** Picks one of so many, the n-th in proportion to 1/n (Zipf), as tenants of a service are. */
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

/** How far a data centre is from the database, there and back, ms: half of them within 40, the farthest at 150. */
export const rttOf = (colo: number) => Math.round(5 + 145 * ((colo * 0.618034) % 1) ** 2)
