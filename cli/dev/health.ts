/** The longest wait for an answer, ms. An app may leave a path that it does not know unanswered. */
const TIMEOUT_MS = 10_000

/** An address that no client has (RFC 5737): an app counts the question like any request, and not for a client of this machine. */
const headers = { 'CF-Connecting-IP': '192.0.2.0' }

/**
 * Asks whether a Worker answers paths under `/_sluice/`, which the dashboard reads.
 * @returns true if it is a gateway, or an app with `endpoints()`
 */
export async function answersHealth(url: string, timeoutMs = TIMEOUT_MS): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await fetch(`${url}/_sluice/health`, { headers, signal })
    const { status } = await answer.json()
    return status === 'ok' || status === 'misconfigured'
  } catch {
    return false
  }
}
