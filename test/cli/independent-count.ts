/**
 * Counts which requests of a log in the Combined Log Format or in nginx's JSON a sliding window refuses. Shares no code with the project: it is written from
 * docs/explanation/algorithms.md.
 */

interface Counted {
  refused: number
  /** Refused requests by address. */
  byAddress: Map<string, number>
}

/** The requests in order of time. Requests of the same second stay in the order of the log. */
function requestsOf(text: string) {
  const found: { second: number; address: string }[] = []
  for (const line of text.split('\n')) {
    const plain = line.replace(
      /^{"time": "(.+?)", "remote_ip": "(.+?)".*/,
      (_, time, address) => `${address} - - [${time}]`,
    )
    const parts = /^(\S+) \S+ \S+ \[(\d+)\/(\w+)\/(\d+):(\d+:\d+:\d+) ([+-]\d{4})\]/.exec(plain)
    if (!parts) continue
    const [, address, day, month, year, time, zone] = parts
    const stamp = Date.parse(`${day} ${month} ${year} ${time} ${zone}`)
    found.push({ second: stamp / 1000, address: address! })
  }
  return found.sort((one, other) => one.second - other.second)
}

/**
 * @param isSpread true: the i-th of n requests of a second comes i · 1000 / n ms after its start. false: all come at its start
 */
export function countRefusals(
  text: string,
  { limit, seconds, isSpread }: { limit: number; seconds: number; isSpread: boolean },
): Counted {
  const requests = requestsOf(text)
  const perSecond = new Map<number, number>()
  for (const { second } of requests) perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
  const seen = new Map<number, number>()
  const windows = new Map<string, number>()
  const counted: Counted = { refused: 0, byAddress: new Map() }
  for (const { second, address } of requests) {
    const place = seen.get(second) ?? 0
    seen.set(second, place + 1)
    const ms = isSpread ? Math.floor((place * 1000) / perSecond.get(second)!) : 0
    const window = Math.floor(second / seconds)
    const leftMs = seconds * 1000 - ((second % seconds) * 1000 + ms)
    const current = windows.get(`${address} ${window}`) ?? 0
    const previous = windows.get(`${address} ${window - 1}`) ?? 0
    if (previous * leftMs + (current + 1) * seconds * 1000 <= limit * seconds * 1000) {
      windows.set(`${address} ${window}`, current + 1)
      continue
    }
    counted.refused += 1
    counted.byAddress.set(address, (counted.byAddress.get(address) ?? 0) + 1)
  }
  return counted
}
