/** The bills of docs/explanation/cost.md, from the prices and the measured tables. */
import { expect, test } from 'vitest'
import { PRICES } from '../../tools/bench/objects.ts'
import { found, pageAt } from '../support/pages.ts'

/** The prices and what they include in a month, as the page names them. In millions. */
const WORKERS = { base: 5, requests: 10, perRequests: 0.3, cpuMs: 30, perCpuMs: 0.02 }
const INCLUDED = { requests: 1, rowsWritten: 50, gigabyteSeconds: 0.4 }
const GIGABYTES = 0.128
const PER_COMMAND = 2 // $ for a million

const cells = (row: string) => row.split('|').map((cell) => cell.trim())
const between = (page: string, name: string) =>
  pageAt(page).text.split(new RegExp(`<!-- /?${name} -->`))[1]!

const objects = (client: string) => {
  const row = between('docs/guides/without-a-database.md', 'objects')
    .split('\n')
    .find((line) => line.startsWith(`| ${client} |`))!
  const [, , requests, rows, ms] = cells(row).map(Number)
  return { requests: requests!, rowsWritten: rows!, gigabyteSeconds: (ms! / 1000) * GIGABYTES }
}

const beyond = (used: number, included: number) => Math.max(0, used - included)

const workers = (millions: number) =>
  WORKERS.base +
  beyond(millions, WORKERS.requests) * WORKERS.perRequests +
  beyond(millions, WORKERS.cpuMs) * WORKERS.perCpuMs

const ofObjects = (client: string, millions: number) => {
  const used = objects(client)
  return (['requests', 'rowsWritten', 'gigabyteSeconds'] as const).reduce(
    (sum, name) => sum + beyond(used[name] * millions, INCLUDED[name]) * PRICES[name],
    0,
  )
}

/** Billed commands for a decision, in the row of a workload: to a tenth, because the next run differs by less. */
const commandsOf = (workload: string) => {
  const text = pageAt('tools/bench/RESULTS.md').text.split(`### ${workload}`)[1]!
  const [row] = found(text, /^(\| Sluice, default settings \|.*)$/gm)
  return Math.round(Number(cells(row!)[7]) * 10) / 10
}

const dollars = (value: number) =>
  `$${value < 100 ? value.toFixed(2) : Math.round(value).toLocaleString('en-US')}`

test('The bills are those of the prices and the measured decisions.', () => {
  const alone = commandsOf('One request at a time')
  const together = commandsOf('64 at once, many keys')
  const rows = [1, 10, 100, 1000].map((millions) => {
    const bills = [
      workers(millions),
      alone * PER_COMMAND * millions,
      together * PER_COMMAND * millions,
      ofObjects('one request in 5 minutes', millions),
      ofObjects('10 requests a second', millions),
    ]
    return `| ${millions} million | ${bills.map(dollars).join(' | ')} |`
  })
  expect(between('docs/explanation/cost.md', 'volume').trim().split('\n').slice(2)).toEqual(rows)
})
