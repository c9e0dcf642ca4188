/** The longest wait for an answer, ms. An app may leave a path that it does not know unanswered. */
const TIMEOUT_MS = 10_000

/**
 * Asks whether a Worker answers paths under `/_sluice/`, which the dashboard reads.
 * @returns true if it is a gateway, or an app with `endpoints()`
 */
export async function answersHealth(url: string, timeoutMs = TIMEOUT_MS): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/_sluice/health`, { signal: AbortSignal.timeout(timeoutMs) })
    const { status } = await answer.json()
    return status === 'ok' || status === 'misconfigured'
  } catch {
    return false
  }
}
