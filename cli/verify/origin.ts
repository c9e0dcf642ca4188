/** The app must not be reachable without Sluice. */
import { request as requestPlain } from 'node:http'
import { request as requestSecure } from 'node:https'
import { ANSWER } from '../../src/features/verify/field.ts'
import { reasonOf } from './client.ts'
import { type Finding, ok, problem } from './finding.ts'

const TIMEOUT_MS = 10_000

interface OriginAnswer {
  status: number
  fields: Record<string, string | string[] | undefined>
}

/**
 * Asks the origin directly, without a token: by its own name, and by that of the deployment, as a client may.
 * @param host that of the deployment
 */
export async function checkOrigin(origin: string, host: string): Promise<Finding> {
  const own = await ask(origin, new URL(origin).host, host)
  const first = judge(origin, own, host)
  if (first.status === 'problem' || own instanceof Error) return first
  const other = judge(origin, await ask(origin, host, host), host)
  return other.status === 'problem' ? other : first
}

function judge(origin: string, answer: OriginAnswer | Error, host: string): Finding {
  const name = 'origin'
  const shown = new URL(origin).origin
  if (answer instanceof Error) {
    return ok(name, `${shown} does not answer from here (${reasonOf(answer, TIMEOUT_MS)})`)
  }
  const { status, fields } = answer
  if (fields['ratelimit-policy'] !== undefined || fields[ANSWER] !== undefined) {
    return ok(name, `${shown} answers through Sluice`)
  }
  if (status === 401 || status === 403 || status === 421) {
    return ok(name, `${shown} refuses requests without Sluice (${status})`)
  }
  const target = String(fields.location ?? '')
  const isBack = URL.canParse(target, shown) && new URL(target, shown).hostname === host
  if (status >= 300 && status < 400 && isBack && new URL(shown).hostname !== host) {
    return ok(name, `${shown} redirects to ${host}`)
  }
  return problem(
    name,
    `${shown} answers ${status} without Sluice: a client can go around it. Let the origin accept only requests of the Worker`,
  )
}

/** Sends one request, with any certificate: a client need not check it either. */
function ask(origin: string, host: string, deployment: string): Promise<OriginAnswer | Error> {
  const isSecure = new URL(origin).protocol === 'https:'
  const name = host.replace(/:\d+$/, '')
  const options = {
    headers: { 'user-agent': 'sluice-verify', host, 'x-forwarded-host': deployment },
    agent: false as const,
    rejectUnauthorized: false,
    // The name of a certificate is no address.
    ...(isSecure && !/^[\d.]+$|:/.test(name) && { servername: name }),
    timeout: TIMEOUT_MS,
  }
  return new Promise((resolve) => {
    const sent = (isSecure ? requestSecure : requestPlain)(origin, options, (response) => {
      const { statusCode: status = 0, headers: fields } = response
      response.destroy()
      resolve({ status, fields })
    })
    sent.on('timeout', () =>
      sent.destroy(Object.assign(new Error('no answer'), { name: 'TimeoutError' })),
    )
    sent.on('error', resolve)
    sent.end()
  })
}
