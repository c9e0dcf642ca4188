/** The local server of the dashboard: it serves the page, and forwards the page's calls to the Worker with the token of an operator. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Stats } from '../../src/features/observe/report.ts'
import type { About } from './about.ts'
import type { AnalyticsReader } from './analytics.ts'
import { type Answer, ask, forward, problem, readBody, type WatchedWorker } from './forward.ts'
import { headers, refusalOf } from './guard.ts'
import { createHistory } from './history.ts'
import { pageFiles } from './page-files.ts'
import type { Range } from './ranges.ts'
import { createSession, type Session } from './session.ts'

export const DASHBOARD_PORT = 8780

export interface DashboardOptions extends WatchedWorker {
  /** The port on 127.0.0.1; 0 takes a free port. */
  port: number
  /** Reads the counts of all isolates. Defaults to those of the isolate that answers. */
  analytics?: AnalyticsReader | undefined
  /** Returns the findings of the linter for the project on this machine, if there is one. */
  findings?(): About['findings']
}

export interface RunningDashboard {
  url: string
  /** The address that opens the page: `url` with the secret of the session. Only for the user who has started the server. */
  address: string
  close(): Promise<void>
}

/** Starts the server. @throws Error with the code `EADDRINUSE` if the port is in use */
export async function startDashboard(options: DashboardOptions): Promise<RunningDashboard> {
  const session = createSession()
  const history = createHistory()
  const reading = setInterval(() => void readCounts(options, history), READ_MS).unref()
  const server = createServer(async (request, response) => {
    const answer = await answerTo(request, options, session, history).catch((error: Error) =>
      problem(500, error.message),
    )
    const { status, type, body, retryAfter, cookie } = answer
    response
      .writeHead(status, {
        ...headers,
        'Content-Type': type,
        ...(retryAfter && { 'Retry-After': retryAfter }),
        ...(cookie && { 'Set-Cookie': cookie }),
        ...(!request.complete && { Connection: 'close' }),
      })
      .end(request.method === 'HEAD' ? undefined : body)
    // Ends an upload that is too large.
    if (!request.complete) response.once('finish', () => request.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, '127.0.0.1', resolve)
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    address: `${url}/#${session.secret}`,
    async close() {
      clearInterval(reading)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Adds the counts of the Worker to the history. Never rejects: an answer without counts is reported when the page asks. */
export const readCounts = (worker: WatchedWorker, history: ReturnType<typeof createHistory>) =>
  ask('GET', STATS, worker)
    .then(({ status, body }) => status === 200 && history.add(JSON.parse(body) as Stats))
    .catch(() => false)

async function answerTo(
  request: IncomingMessage,
  options: DashboardOptions,
  session: Session,
  history: ReturnType<typeof createHistory>,
): Promise<Answer> {
  const refusal = refusalOf(request)
  if (refusal) return problem(403, refusal)
  const { method, url = '' } = request
  const file = method === 'GET' && (await pageFiles()).get(url)
  if (file) return { status: 200, ...file }
  if (method === 'POST' && url === '/session') {
    const secret = await readBody(request)
    if (secret === undefined || !session.accepts(secret)) return problem(403, NO_SESSION)
    return { status: 200, type: 'application/json', body: '{}', cookie: session.cookie(request) }
  }
  if (!session.isOpen(request)) return problem(403, NO_SESSION)
  if (method === 'GET' && url === '/about') {
    const about: About = {
      worker: options.url,
      findings: options.findings?.(),
      ...(options.analytics && { keepsWeek: true }),
    }
    return { status: 200, type: 'application/json', body: JSON.stringify(about) }
  }
  const range = method === 'GET' && /^\/history\?range=(hour|day|week)$/.exec(url)?.[1]
  if (range) {
    const own = () => history.read(range as Range, Date.now())
    const found = (await options.analytics?.history(range as Range)) ?? own()
    return found
      ? { status: 200, type: 'application/json', body: JSON.stringify(found) }
      : problem(404, 'Only the Analytics Engine keeps a week.')
  }
  const answer = await forward(request, options)
  if (!answer) return problem(404, 'The dashboard has no such page.')
  if (url !== STATS || answer.status !== 200) return answer
  const stats: Stats = JSON.parse(answer.body)
  if (stats.total && stats.slots) history.add(stats)
  // Replaces the counts of one isolate by those of all.
  const all = await options.analytics?.counts()
  return all ? { ...answer, body: JSON.stringify({ ...stats, ...all, isOfAll: true }) } : answer
}

const STATS = '/_sluice/v1/stats'
/** An isolate keeps the counts of the last 10 minutes. */
const READ_MS = 300_000

const NO_SESSION =
  'Open the whole address that the command printed when it started. Its end, after #, is the secret of this page.'
