/** Workers Analytics Engine for tests: a dataset with the documented limits, and its SQL API on loopback. SQLite runs the queries. */
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { DataPoint } from '../../src/features/observe/analytics.ts'
import { createDataset } from './dataset.ts'
import type { Answer } from './issuer.ts'
import { startLoopback } from './loopback.ts'

const API = 'https://api.cloudflare.com'
const TOKEN = 'secret-token'

let accounts = 0

export async function startAnalyticsEngine(dataset = 'sluice_counts') {
  // Each engine has its own account, because a result is cached by account.
  const account = String(++accounts).padStart(32, '0')
  // The functions of the SQL API in `queries`.
  const database = createDataset(dataset, [
    function toUnixTimestamp(time) {
      return time
    },
    function toStartOfInterval(time, seconds) {
      return Number(time) - (Number(time) % Number(seconds))
    },
  ])

  const engine = {
    /** The variables of a Worker that reads the dataset. */
    env: {
      CLOUDFLARE_ACCOUNT_ID: account,
      CLOUDFLARE_API_TOKEN: TOKEN,
      SLUICE_ANALYTICS_DATASET: dataset,
    },
    /** Each point that is written stands for this number of points. */
    sampleInterval: 1,
    /** Replaces the answer of the SQL API. */
    answer: undefined as Answer | undefined,
    /** Writes numbers as text, as ClickHouse does with integers of 64 bits. */
    numbersAsText: false,
    /** The queries that the SQL API received. */
    queries: [] as string[],
    startInvocation,
    fetcher: ((url, init) =>
      fetch(String(url).replace(API, address), init)) as typeof globalThis.fetch,
    stop,
  }

  /** Starts an invocation of a Worker. Returns the binding of the dataset. */
  function startInvocation() {
    let written = 0
    return {
      writeDataPoint({ indexes, blobs, doubles }: DataPoint) {
        const bytes = (texts: string[]) =>
          texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
        if (++written > 25) throw new Error('more than 25 data points')
        if (indexes.length > 1 || bytes(indexes) > 96) throw new Error('the index is too long')
        if (blobs.length > 20 || bytes(blobs) > 5120) throw new Error('the blobs are too long')
        if (doubles.length > 20) throw new Error('more than 20 doubles')
        const now = Math.floor(Date.now() / 1000)
        database.write({ indexes, blobs, doubles }, now, engine.sampleInterval)
      },
    }
  }

  function run(sql: string) {
    const inSqlite = sql.replace(/INTERVAL '(\d+)' SECOND/g, '$1').replace(/ FORMAT JSON$/, '')
    const data = database.query(inSqlite)
    const write = (_: string, value: unknown) =>
      engine.numbersAsText && typeof value === 'number' ? String(value) : value
    return JSON.stringify({ meta: [], data, rows: data.length }, write)
  }

  const isAllowed = ({ method, url, headers }: IncomingMessage) =>
    method === 'POST' &&
    url === `/client/v4/accounts/${account}/analytics_engine/sql` &&
    headers.authorization === `Bearer ${TOKEN}`

  const { url: address, close } = await startLoopback(async (request, response) => {
    const sql = await text(request)
    engine.queries.push(sql)
    if (!isAllowed(request)) response.writeHead(403).end()
    else if (engine.answer) engine.answer(response, request)
    else response.end(run(sql))
  })

  async function stop() {
    await close()
    database.close()
  }
  return engine
}

export type AnalyticsEngine = Awaited<ReturnType<typeof startAnalyticsEngine>>
