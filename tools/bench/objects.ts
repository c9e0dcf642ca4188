/** `npx node tools/bench/objects.ts`: what Durable Objects cost, by how often a client sends a request. Writes the table of the guide. */
import { parseArgs } from 'node:util'
import type { StoreRequest } from '../../src/core/connection/store.ts'
import { createObjectStore } from '../../src/stores/durable-objects/objects.ts'
import { writeBetween } from '../markers.ts'
import { createRandom, gapMs } from './random.ts'
import { type Bill, createObject } from './simulate/object-runtime.ts'
import { startVirtualTime } from './simulate/time.ts'
import { digits, table } from './stack/report/table.ts'

const GUIDE = new URL('../../docs/guides/without-a-database.md', import.meta.url)

/** The prices of the paid plan of Workers, from Cloudflare's page of 2026-11-24, in dollars for a million. */
export const PRICES = { requests: 0.15, rowsWritten: 1, rowsRead: 0.001, gigabyteSeconds: 12.5 }
/** The memory that is billed for an object, GB. */
const MEMORY = 0.128

/** How often a client sends a request. */
const CLIENTS: [name: string, perSecond: number][] = [
  ['one request in two hours', 1 / 7200],
  ['one request in 5 minutes', 1 / 300],
  ['one request in 10 seconds', 1 / 10],
  ['one request a second', 1],
  ['10 requests a second', 10],
  ['100 requests a second', 100],
]
const DECISIONS = 4000

const take: StoreRequest[] = [
  {
    mode: 'take',
    limits: [
      {
        subject: 'client',
        cost: 1,
        terms: {
          tag: 'per-ip',
          algorithm: 'sliding-window',
          limit: 1e9,
          windowMs: 60_000,
          burst: 1e9,
          align: 'first-request',
          localShare: 1,
        },
      },
    ],
  },
]

/** Simulates one client whose requests are all admitted. The times between them are random. */
export async function billOf(perSecond: number, decisions = DECISIONS): Promise<Bill> {
  const time = startVirtualTime(1_800_000_000_000)
  try {
    const { objects, bill } = createObject(time)
    const store = createObjectStore({ objects, binding: 'SLUICE_SUBJECT', batching: false })
    const random = createRandom(1)
    let at = time.now()
    for (let n = 0; n < decisions; n++) {
      time.at(at, () => store.decide(take))
      at += gapMs(perSecond, random)
    }
    await time.run(at + 10 * 3_600_000)
    return bill
  } finally {
    time.end()
  }
}

/** The price of the decisions of a bill, in dollars. */
export const priceOf = ({ requests, rowsWritten, rowsRead, activeMs }: Bill): number =>
  (requests * PRICES.requests +
    rowsWritten * PRICES.rowsWritten +
    rowsRead * PRICES.rowsRead +
    (activeMs / 1000) * MEMORY * PRICES.gigabyteSeconds) /
  1e6

async function main() {
  const { values } = parseArgs({ options: { write: { type: 'boolean' } } })
  const lines: (string | number)[][] = []
  for (const [name, perSecond] of CLIENTS) {
    const bill = await billOf(perSecond)
    const each = (count: number) => digits(count / DECISIONS)
    const { requests, rowsWritten, activeMs } = bill
    const dollars = digits((priceOf(bill) * 1e6) / DECISIONS)
    lines.push([name, each(requests), each(rowsWritten), each(activeMs), dollars])
  }
  const text = table(
    ['a client sends', 'requests and alarms', 'rows written', 'ms billed', '$ per million'],
    lines,
  )
  console.log(text)
  if (values.write) await writeBetween(GUIDE, 'objects', text)
}

if (import.meta.main) await main()
