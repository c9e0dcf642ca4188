/** The local server of the dashboard: it serves the page, and forwards the page's calls to the Worker with the token of an operator. */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { About } from './about.ts'
import type { AllCounts } from './analytics.ts'
import { type Answer, forward, problem, readBody, type WatchedWorker } from './forward.ts'
import { headers, refusalOf } from './guard.ts'
import { pageFiles } from './page-files.ts'
import { createSession, type Session } from './session.ts'

export const DASHBOARD_PORT = 8780

export interface DashboardOptions extends WatchedWorker {
  /** The port on 127.0.0.1; 0 takes a free port. */
  port: number
  /** Returns the counts of all isolates, if they can be read. */
  allCounts?: (() => Promise<AllCounts | undefined>) | undefined
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
  const server = createServer(async (request, response) => {
    const answer = await answerTo(request, options, session).catch((error: Error) =>
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
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function answerTo(
  request: IncomingMessage,
  options: DashboardOptions,
  session: Session,
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
    const about: About = { worker: options.url, findings: options.findings?.() }
    return { status: 200, type: 'application/json', body: JSON.stringify(about) }
  }
  const answer = await forward(request, options)
  if (!answer) return problem(404, 'The dashboard has no such page.')
  return url.endsWith('/stats') && answer.status === 200 ? withAll(answer, options) : answer
}

/** Replaces the counts of one isolate by those of all. */
async function withAll(answer: Answer, { allCounts }: DashboardOptions): Promise<Answer> {
  const all = await allCounts?.()
  return all
    ? { ...answer, body: JSON.stringify({ ...JSON.parse(answer.body), ...all, isOfAll: true }) }
    : answer
}

const NO_SESSION =
  'Open the whole address that the command printed when it started. Its end, after #, is the secret of this page.'
